'use strict';

// Texts become text nodes and attributes, so that nothing in the documents is read as HTML.
const element = (name, attributes, ...children) => {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children.flat(Infinity));
  return made;
};
const code = (text) => element('code', {}, String(text));
const json = (value) => JSON.stringify(value, null, 2);

// Between backticks a text is code.
const marked = (text) => (text ?? '').split('`').map((part, index) => (index % 2 ? code(part) : part));
const paragraphs = (text) => (text ?? '').split('\n\n').filter(Boolean).map((part) => element('p', {}, marked(part)));

const table = (heads, rows) => element('div', { class: 'scroll' }, element('table', {},
  element('thead', {}, element('tr', {}, heads.map((head) => element('th', {}, head)))),
  element('tbody', {}, rows.map((cells) => element('tr', {}, cells.map((cell) => element('td', {}, cell)))))));
const quiet = (text) => element('span', { class: 'quiet' }, text);

// The part of the document that a value names, else the value.
const resolve = (api, value) => {
  const [, , kind, name] = value?.$ref?.split('/') ?? [];
  return name ? api.components[kind][name] ?? {} : value ?? {};
};

// A value in a few words.
const kind = (api, schema) => {
  const name = schema.$ref?.split('/').pop() ?? '';
  const known = resolve(api, schema);
  const listed = (all, separator) => all.flatMap((one, index) => [index ? separator : '', code(one)]);
  const words = known.enum ? listed(known.enum, ' or ') : [name || known.type || 'object'];
  return [
    'const' in known ? code(known.const) : words,
    name && known.properties ? [' with ', listed(Object.keys(known.properties), ', ')] : '',
    known.maxLength && !name ? `, at most ${known.maxLength} characters` : '',
    schema.description ? [': ', marked(schema.description)] : '',
  ];
};

// The members of a body, for each form that it may have. Of an Envelope only the body, since that is what differs.
const body = (api, named) => {
  const schema = resolve(api, named);
  if (schema.properties?.body) return body(api, schema.properties.body);
  // Envelopes after the first form hold what the bare forms show.
  const isShown = (form, index) => index === 0 || !resolve(api, form).properties?.body;
  if (schema.oneOf) return schema.oneOf.filter(isShown).map((form) => body(api, form));
  if (!schema.properties) return [];
  const rows = Object.entries(schema.properties).map(([name, member]) => [
    code(name), quiet(schema.required?.includes(name) ? '' : 'optional'), kind(api, member),
  ]);
  return [paragraphs(schema.description), table(['member', '', 'is'], rows)];
};

// A call for a terminal. JSON is printed without quotes that end a word of the shell.
const command = (method, path, operation, parameters, example) => {
  let target = path;
  for (const { in: place, name, required, example: value } of parameters) {
    if (place === 'path') target = target.replace(`{${name}}`, value);
    else if (place === 'query' && required) target += `${target.includes('?') ? '&' : '?'}${name}=${value}`;
  }
  const lines = [`curl -sSN -w '\\n' -X ${method.toUpperCase()} "$GATEWAY${target}"`];
  if (!operation.security) lines.push('-H "Authorization: Bearer $KEY"');
  if (operation.responses['101']) {
    lines.push("--http1.1 -H 'Connection: Upgrade' -H 'Upgrade: websocket'");
    lines.push("-H 'Sec-WebSocket-Version: 13' -H 'Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg=='");
  }
  if (example) {
    lines.push("-H 'Content-Type: application/json'");
    lines.push(`-d '${JSON.stringify(example).replaceAll("'", '\\u0027')}'`);
  }
  return lines.join(' \\\n  ');
};

const answer = (api, [status, named]) => {
  const response = resolve(api, named);
  const examples = Object.values(response.content ?? {}).flatMap((media) => Object.values(media.examples ?? {}));
  const shown = examples.map(({ value }) => {
    const error = value.body ?? value;
    if (error.code && error.message) return element('p', {}, code(error.code), ` ${error.message}`);
    return element('pre', {}, code(json(value)));
  });
  return [code(status), [status < '400' ? marked(response.description) : '', shown]];
};

const call = (api, method, path, operation) => {
  const parameters = (operation.parameters ?? []).map((one) => resolve(api, one));
  const content = operation.requestBody?.content['application/json'];
  const example = content && Object.values(content.examples)[0].value;
  const rows = parameters.map((one) => [
    code(one.name), quiet(one.required ? one.in : `${one.in}, optional`),
    [kind(api, one.schema), one.description ? [': ', marked(one.description)] : ''],
  ]);
  const inputs = parameters.map((one) => element('label', {}, `${one.name} `,
    element('input', { name: one.name, 'data-in': one.in, value: one.example ?? '' })));
  const form = element('form', { 'data-method': method, 'data-path': path }, inputs,
    example ? element('label', {}, 'body ', element('textarea', { rows: 8 }, json(example))) : [],
    element('button', {}, 'Send'), element('pre', { hidden: '' }, code('')));
  return element('details', { id: operation.operationId },
    element('summary', {}, code(`${method.toUpperCase()} ${path}`), ' ', marked(operation.summary)),
    paragraphs(operation.description),
    rows.length ? table(['parameter', 'in', 'is'], rows) : [],
    content ? body(api, content.schema) : [],
    element('pre', { 'data-curl': operation.operationId }, code(command(method, path, operation, parameters, example))),
    // A page cannot make a WebSocket of a fetch.
    operation.responses['101'] ? [] : form,
    table(['status', 'answer'], Object.entries(operation.responses).map((one) => answer(api, one))));
};

const calls = (api) => {
  const all = Object.entries(api.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method, path, operation })));
  return api.tags.map((tag) => [
    element('h2', { id: tag.name }, tag.name), paragraphs(tag.description),
    all.filter(({ operation }) => operation.tags[0] === tag.name)
      .map(({ method, path, operation }) => call(api, method, path, operation)),
  ]);
};

const channel = ({ title, address, description, 'x-close-codes': codes }) => [
  element('h3', {}, `${title}: `, code(address)), paragraphs(description),
  codes ? table(['close code', 'reason', 'then'],
    Object.entries(codes).map(([number, close]) => [code(number), close.reason, close.then])) : [],
];

const message = (api, [id, { name, title, summary, description, payload, examples }]) => element('details', { id: `message-${id}` },
  element('summary', {}, code(name), ` ${title}`), paragraphs(summary), paragraphs(description), body(api, payload),
  element('pre', { 'data-message': id }, code(json(examples[0].payload))));

const fill = (id, children) => document.getElementById(id).append(...children.flat(Infinity));

const load = async () => {
  document.getElementById('origin').textContent = location.origin;
  try {
    const documents = ['/openapi.json', '/asyncapi.json'].map(async (path) => (await fetch(path)).json());
    const [api, messages] = await Promise.all(documents);
    const schemes = Object.values(api.components.securitySchemes);
    const sections = [...api.tags.map(({ name }) => [`#${name}`, name]), ['#messages', 'Messages']];
    fill('contents', sections.map(([href, name]) => element('li', {}, element('a', { href }, name))));
    fill('schemes', schemes.map(({ name, scheme, type, description }) =>
      element('li', {}, code(name ?? scheme ?? type), ': ', marked(description))));
    fill('calls', calls(api));
    fill('channels', [
      paragraphs(messages.info.description), Object.values(messages.channels).map(channel),
      Object.entries(messages.components.messages).map((one) => message(api, one)),
    ]);
    document.getElementById(location.hash.slice(1))?.scrollIntoView();
  } catch (error) {
    fill('calls', [element('p', {}, `The documents of this node could not be read: ${error}`)]);
  }
};
// The landing page has the same script.
if (document.getElementById('calls')) load();

// The answer as it arrives: an event stream does not end.
const show = async (response, output) => {
  output.textContent = `${response.status} ${response.statusText}\n`;
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    text += part.value;
    output.textContent += part.value;
  }
  if ((response.headers.get('content-type') || '').includes('json')) {
    output.textContent = `${response.status} ${response.statusText}\n${JSON.stringify(JSON.parse(text), null, 2)}`;
  }
};

const request = (form) => {
  let path = form.dataset.path;
  const query = new URLSearchParams();
  const headers = new Headers();
  const key = document.getElementById('key').value;
  if (key) headers.set('Authorization', `Bearer ${key}`);
  for (const { name, value, dataset } of form.querySelectorAll('input')) {
    if (dataset.in === 'path') path = path.replace(`{${name}}`, encodeURIComponent(value));
    else if (value && dataset.in === 'query') query.set(name, value);
    else if (value) headers.set(name, value);
  }
  const body = form.querySelector('textarea')?.value;
  if (body) headers.set('Content-Type', 'application/json');
  return [query.size ? `${path}?${query}` : path, { method: form.dataset.method.toUpperCase(), headers, body: body || undefined }];
};

document.addEventListener('submit', async (event) => {
  event.preventDefault();
  const form = event.target;
  if (!form.dataset.path) return;
  form.running?.abort();
  form.running = new AbortController();
  const output = form.querySelector('pre');
  output.hidden = false;
  try {
    const [url, options] = request(form);
    const response = await fetch(url, { ...options, credentials: 'omit', signal: form.running.signal });
    await show(response, output.firstChild);
  } catch (error) {
    if (error.name !== 'AbortError') output.firstChild.textContent = String(error);
  }
});

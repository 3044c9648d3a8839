'use strict';

const origin = document.getElementById('origin');
if (origin) origin.textContent = location.origin;

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

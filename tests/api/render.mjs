// Prints /docs as its script fills it: the page and both documents come as JSON on standard input.
// A browser's DOM is replaced by elements that only keep what they are given.

import { text } from 'node:stream/consumers';
import { runInNewContext } from 'node:vm';

const { page, documents } = JSON.parse(await text(process.stdin));
const escape = (value) => String(value).replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');

class Element {
  attributes = [];
  children = [];
  constructor(name) { this.name = name; }
  setAttribute(name, value) { this.attributes.push(` ${name}="${escape(value)}"`); }
  append(...children) { this.children.push(...children); }
  set textContent(value) { this.children = [value]; }
  get inner() { return this.children.map((child) => (child instanceof Element ? `${child}` : escape(child))).join(''); }
  toString() {
    const open = `<${this.name}${this.attributes.join('')}>`;
    return this.name === 'input' ? open : `${open}${this.inner}</${this.name}>`;
  }
}

const known = new Map();
const getElementById = (id) => {
  if (!page.includes(` id="${id}"`)) return null;
  if (!known.has(id)) known.set(id, new Element('div'));
  return known.get(id);
};
const script = page.split('<script>')[1].split('</script>')[0];
runInNewContext(script, {
  document: { createElement: (name) => new Element(name), getElementById, addEventListener: () => {} },
  fetch: async (path) => ({ json: async () => documents[path] }),
  location: { origin: 'the address', hash: '' },
});
await new Promise((done) => { setTimeout(done); });

let filled = page;
for (const [id, element] of known) {
  const end = filled.indexOf('>', filled.indexOf(` id="${id}"`)) + 1;
  filled = filled.slice(0, end) + element.inner + filled.slice(end);
}
process.stdout.write(filled);

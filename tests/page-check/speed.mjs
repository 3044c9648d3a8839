// How fast the page is: its first load, and the largest patches from the click to the first screen, and while they are scrolled.
// Each figure is the median of several, since other programs run too.

import { loadavg } from 'node:os';
import { LARGE } from './content.mjs';
import { table } from './table.mjs';
import { until } from './wait.mjs';

/** More than an encrypted request can hold by default. */
const PATCH_BYTES = 2 << 20;
const ROUNDS = 5;
/** What the entries of these patches in the inbox have in common. */
const ENTRY = 'part_';
const LIMITS = { bytes: 100 * 1024, interactive: 500, shown: 200, longTask: 50, nodes: 5000 };

export async function run({ gateway, device, found }) {
  const rows = [await firstLoad(gateway, device, found)];
  for (const [shape, make] of Object.entries(LARGE)) {
    const asked = await gateway.ask('patch', make(PATCH_BYTES));
    await device.show('#/inbox');
    await Promise.race([device.see('.request-entry', ENTRY), asked.ended.then((code) => {
      throw new Error(`asking ended with ${code}: ${asked.output()}`);
    })]);
    rows.push(await large(device, shape, found));
    asked.stop();
    await asked.ended;
  }
  return table(`Speed: medians of ${ROUNDS} (load ${loadavg()[0].toFixed(1)})`, rows);
}

function median(values) {
  return [...values].sort((one, other) => one - other)[Math.floor(values.length / 2)];
}

/** From the address to an inbox that answers, with an empty cache. */
async function firstLoad(gateway, device, found) {
  const { page } = device;
  await page.setViewport({ width: 1280, height: 800 });
  const session = await page.createCDPSession();
  await session.send('Network.enable');
  await session.send('Network.setCacheDisabled', { cacheDisabled: true });
  await session.send('Network.setBypassServiceWorker', { bypass: true });
  const [sizes, times] = [[], []];
  for (let round = 0; round < ROUNDS; round += 1) {
    await page.goto('about:blank');
    await page.goto(`${gateway.page}/#/inbox`);
    await page.waitForSelector('main h1');
    // The first view is shown, its listeners are there, and the browser is free to call them.
    times.push(await page.evaluate(() => new Promise((resolve) => {
      requestAnimationFrame(() => setTimeout(() => resolve(performance.now())));
    })));
    sizes.push(await page.evaluate(() => [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]
      .filter(({ name }) => !name.includes('/v1/')).reduce((sum, entry) => sum + entry.encodedBodySize, 0)));
  }
  await session.detach();
  const row = { what: 'first load', 'KiB': (median(sizes) / 1024).toFixed(0), 'ms until shown': median(times).toFixed(0) };
  if (median(sizes) > LIMITS.bytes) found.push(`speed: the first load has ${median(sizes)} bytes, more than ${LIMITS.bytes}`);
  if (median(times) > LIMITS.interactive) found.push(`speed: interactive after ${median(times)} ms, more than ${LIMITS.interactive}`);
  return row;
}

async function large(device, shape, found) {
  const { page } = device;
  const times = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    await device.show('#/inbox');
    await device.see('.request-entry', ENTRY);
    times.push(await page.evaluate(clickToPainted, ENTRY));
  }
  await until('the whole of it', () => page.evaluate(() => document.querySelector('.patch-total') !== null));
  const scrolled = await page.evaluate(scrollThrough);
  const row = {
    what: shape, 'ms until shown': median(times).toFixed(0), 'elements': scrolled.elements,
    'longest task while scrolling': scrolled.longest.toFixed(0), 'slowest frame': scrolled.slowest.toFixed(0), 'frames': scrolled.frames,
  };
  if (median(times) > LIMITS.shown) found.push(`speed, ${shape}: shown after ${median(times)} ms, more than ${LIMITS.shown}`);
  if (scrolled.longest > LIMITS.longTask) found.push(`speed, ${shape}: a task of ${scrolled.longest} ms while scrolling`);
  if (scrolled.elements > LIMITS.nodes) found.push(`speed, ${shape}: ${scrolled.elements} elements`);
  return row;
}

/** Runs in the page: from the click on a request until its first lines are painted. */
function clickToPainted(words) {
  return new Promise((resolve) => {
    const entry = [...document.querySelectorAll('.request-entry')].find((one) => one.textContent.includes(words));
    let clicked = 0;
    entry.addEventListener('click', () => {
      clicked = performance.now();
    }, { once: true });
    const seen = new MutationObserver(() => {
      if (!document.querySelector('.patch .line')) return;
      seen.disconnect();
      // The task after the frame: it has been painted then.
      requestAnimationFrame(() => {
        const { port1, port2 } = new MessageChannel();
        port1.onmessage = () => resolve(performance.now() - clicked);
        port2.postMessage(null);
      });
    });
    seen.observe(document.body, { childList: true, subtree: true });
    entry.click();
  });
}

/** Runs in the page: scrolls like a person in a hurry, and jumps. */
async function scrollThrough() {
  const tasks = [];
  const observer = new PerformanceObserver((list) => tasks.push(...list.getEntries().map((entry) => entry.duration)));
  await new Promise((resolve) => setTimeout(resolve, 300));
  observer.observe({ type: 'longtask' });
  const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
  let [slowest, frames, elements] = [0, 0, 0];
  const step = async (by) => {
    const begun = performance.now();
    scrollBy({ top: by, behavior: 'instant' });
    await frame();
    slowest = Math.max(slowest, performance.now() - begun);
    frames += 1;
    if (frames % 10 === 0) elements = Math.max(elements, document.querySelectorAll('*').length);
  };
  for (let at = 0; at < 200; at += 1) await step(120);
  for (let at = 0; at < 20; at += 1) await step(document.documentElement.scrollHeight / 22);
  for (let at = 0; at < 60; at += 1) await step(-400);
  await new Promise((resolve) => setTimeout(resolve, 100));
  observer.disconnect();
  return { longest: Math.max(0, ...tasks), slowest, frames, elements };
}

// Elements without markup: whatever comes from outside becomes a text node, never HTML.

const asProperty = new Set(['value', 'checked', 'disabled', 'hidden', 'selected', 'open']);

/** Makes an element: h('button', { class: 'quiet', onclick: go }, 'Go'). Strings become text nodes. */
export function h(tag, properties = {}, ...children) {
  return dress(document.createElement(tag), properties, children);
}

/** The same for SVG. */
export function svg(tag, properties = {}, ...children) {
  return dress(document.createElementNS('http://www.w3.org/2000/svg', tag), properties, children);
}

function dress(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (asProperty.has(name)) element[name] = value;
    else element.setAttribute(name, value === true ? '' : String(value));
  }
  append(element, children);
  return element;
}

function append(element, children) {
  for (const child of children) {
    if (child === undefined || child === null || child === false) continue;
    if (Array.isArray(child)) append(element, child);
    else element.append(child instanceof Node ? child : String(child));
  }
}

/** Puts other children into an element. */
export function fill(element, ...children) {
  element.replaceChildren();
  append(element, children);
  return element;
}

/** A field with its label: the label names it for everybody. */
export function field(label, control, note) {
  return h('label', { class: 'field' }, h('span', {}, label), control, note ? h('small', {}, note) : null);
}

/** Says something to those who see and to those who hear; it goes by itself. */
let hush;
export function say(text, kind = '') {
  const said = document.getElementById('said');
  fill(said, h('p', { class: kind }, text));
  clearTimeout(hush);
  hush = setTimeout(() => said.replaceChildren(), kind === 'bad' ? 9000 : 5000);
}

/** Calls a function when nothing has called for some milliseconds. */
export function later(work, milliseconds) {
  let timer;
  const call = (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => work(...values), typeof milliseconds === 'function' ? milliseconds() : milliseconds);
  };
  call.cancel = () => clearTimeout(timer);
  return call;
}

const whole = new Intl.NumberFormat('en');
export const count = (number) => whole.format(number);
export const many = (number, one, several = `${one}s`) => `${count(number)} ${number === 1 ? one : several}`;

export function bytes(size) {
  for (const unit of ['bytes', 'KB', 'MB', 'GB']) {
    if (size < 1000 || unit === 'GB') return `${size < 10 && unit !== 'bytes' ? size.toFixed(1) : Math.round(size)} ${unit}`;
    size /= 1000;
  }
}

export function milliseconds(seconds) {
  if (seconds === null || seconds === undefined) return '–';
  const value = seconds * 1000;
  if (value >= 10000) return `${(value / 1000).toFixed(0)} s`;
  return value >= 1000 ? `${(value / 1000).toFixed(1)} s` : `${value >= 10 ? value.toFixed(0) : value.toFixed(value >= 1 ? 1 : 2)} ms`;
}

/** A time of the server (seconds): the clock today, else the date too. */
export function when(seconds) {
  const at = new Date(seconds * 1000);
  const clock = at.toLocaleTimeString('en-GB');
  return at.toDateString() === new Date().toDateString() ? clock : `${at.toLocaleDateString('en-CA')} ${clock.slice(0, 5)}`;
}

/** Text of any length in a place with little room: its first lines; all of it when one points at it. */
export function clamped(text) {
  return String(text).length > 24 ? h('span', { class: 'clamp', title: text }, text) : text;
}

/** A modal dialog: focus stays in it, Escape closes it, and focus goes back where it was. */
export function dialog(title, ...children) {
  const from = document.activeElement;
  const close = h('button', { type: 'button', class: 'quiet close', 'aria-label': 'Close', onclick: () => box.close() }, '✕');
  const box = h('dialog', { 'aria-label': title }, h('div', { class: 'top' }, h('h2', {}, title), close), ...children);
  box.addEventListener('close', () => {
    box.remove();
    if (from instanceof HTMLElement && from.isConnected) from.focus();
  });
  document.body.append(box);
  box.showModal();
  return box;
}

/** Asks before something that cannot be taken back; true if so. */
export function confirmed(title, question, yes) {
  return new Promise((resolve) => {
    let answer = false;
    const box = dialog(title, h('p', {}, question), h('div', { class: 'actions' },
      h('button', { type: 'button', class: 'danger', onclick: () => { answer = true; box.close(); } }, yes),
      h('button', { type: 'button', onclick: () => box.close() }, 'Leave it')));
    box.addEventListener('close', () => resolve(answer));
  });
}

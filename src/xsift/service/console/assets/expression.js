// Where an expression is written: its text, its prefixes, whether order matters; and below it what is wrong with it, at
// the column where it is.

import { fill, h } from './dom.js';

const EXCERPT = 34; // characters of a long expression that are shown on each side of an error

export class ExpressionEditor {
  constructor({ onChange, label = 'Expression' }) {
    this.onChange = onChange;
    this.bound = {};
    this.problem = h('div', { class: 'problem', id: `problem-${++made}`, role: 'status' });
    this.input = h('textarea', { class: 'code', rows: '2', spellcheck: 'false', autocapitalize: 'off', autocomplete: 'off',
      'aria-describedby': this.problem.id, oninput: () => { this.grow(); onChange(); },
      onkeydown: (event) => { if (event.key === 'Enter' && !event.shiftKey) event.preventDefault(); } });
    this.ordered = h('input', { type: 'checkbox', onchange: onChange });
    this.prefixes = h('ul', { class: 'chips', 'aria-label': 'Prefixes' });
    this.prefix = h('input', { class: 'code', size: '6', placeholder: 'prefix', 'aria-label': 'New prefix', spellcheck: 'false', autocapitalize: 'off' });
    this.uri = h('input', { class: 'code', placeholder: 'namespace URI', 'aria-label': 'Its namespace', spellcheck: 'false', autocapitalize: 'off' });
    for (const input of [this.prefix, this.uri]) {
      input.addEventListener('keydown', (event) => { if (event.key === 'Enter') { event.preventDefault(); this.add(); } });
    }
    this.element = h('div', { class: 'expression' },
      h('label', { class: 'field' }, h('span', {}, label), this.input), this.problem, this.prefixes,
      h('div', { class: 'line' }, this.prefix, this.uri, h('button', { type: 'button', onclick: () => this.add() }, 'Bind')),
      h('label', { class: 'check' }, this.ordered, 'Branches in this order'));
  }

  get value() {
    return { xpath: this.input.value.trim(), ordered: this.ordered.checked, namespaces: { ...this.bound } };
  }

  set value({ xpath = '', ordered = false, namespaces = {} }) {
    this.input.value = xpath;
    this.ordered.checked = ordered;
    this.bound = { ...namespaces };
    this.list();
    this.grow();
  }

  /** Binds a prefix. */
  bind(prefix, uri) {
    this.bound[prefix] = uri;
    this.list();
    this.onChange();
  }

  add() {
    const prefix = this.prefix.value.trim().replace(/:$/, ''), uri = this.uri.value.trim();
    const missing = prefix ? (uri ? null : this.uri) : this.prefix;
    if (missing) { missing.focus(); return; }
    this.bind(prefix, uri);
    this.prefix.value = this.uri.value = '';
  }

  list() {
    fill(this.prefixes, Object.entries(this.bound).map(([prefix, uri]) => h('li', {},
      h('code', {}, h('b', {}, prefix), ` = ${uri}`),
      h('button', { type: 'button', class: 'quiet', 'aria-label': `Remove the prefix ${prefix}`,
        onclick: () => { delete this.bound[prefix]; this.list(); this.onChange(); this.prefix.focus(); } }, '✕'))));
  }

  grow() {
    this.input.style.height = 'auto';
    if (this.input.scrollHeight) this.input.style.height = `${this.input.scrollHeight + 2}px`;
  }

  /** Shows what is wrong under its column; nothing if nothing is. */
  wrong(error) {
    this.input.setAttribute('aria-invalid', error ? 'true' : 'false');
    if (!error) { this.problem.replaceChildren(); return; }
    const text = this.input.value.trim().replaceAll('\n', ' ');
    const column = error.column ? Math.min(error.column - 1, text.length) : null;
    const excerpt = [];
    if (column !== null) {
      const from = Math.max(0, column - EXCERPT), to = Math.min(text.length, column + EXCERPT);
      const lead = (from ? '…' : '') + text.slice(from, column);
      excerpt.push(h('pre', { 'aria-hidden': 'true' }, `${lead}${text.slice(column, to)}${to < text.length ? '…' : ''}\n${' '.repeat(lead.length)}▲`));
    }
    fill(this.problem, excerpt, h('p', {}, h('b', {}, error.detail), column === null ? '' : `, column ${column + 1}`),
      error.hint ? h('p', { class: 'hint' }, error.hint) : null);
  }
}

let made = 0;

/** The prefix that stands at a column of an expression, if one does. */
export function prefixAt(xpath, column) {
  const found = /^([\p{L}_][\p{L}\p{N}._-]*):(?!:)/u.exec(xpath.slice(column - 1));
  return found ? found[1] : null;
}

/** The expression with a name put into a namespace: nitf becomes n:nitf; without a prefix n:nitf becomes nitf. */
export function renamed(xpath, local, prefix) {
  const pattern = /"[^"]*"|'[^']*'|[\p{L}_][\p{L}\p{N}._-]*(?::(?!:)[\p{L}_][\p{L}\p{N}._-]*)?|[^]/gu;
  let before = '';
  return xpath.replace(pattern, (token, place) => {
    const name = token.includes(':') ? token.slice(token.indexOf(':') + 1) : token;
    const next = xpath.slice(place + token.length).trimStart();
    const isElement = name === local && before !== '@' && before !== '$' && !next.startsWith('(') && !next.startsWith('::');
    if (token.trim()) before = token;
    return isElement && /^[\p{L}_]/u.test(token) ? (prefix ? `${prefix}:${local}` : local) : token;
  });
}

// Step by step how far each part of an expression got, what is indexed and what is evaluated, and what to do about a
// namespace that is missing.

import { count, fill, h, many } from './dom.js';
import { prefixAt, renamed } from './expression.js';

export class Explanation {
  constructor(editor) {
    this.editor = editor;
    this.body = h('div', {});
    this.element = h('section', { class: 'card explanation', 'aria-label': 'Step by step' }, h('h2', {}, 'Step by step'), this.body);
    this.clear();
  }

  clear() {
    this.element.hidden = true;
  }

  show(tried) {
    const { validation, patterns = [], evaluated } = tried;
    this.element.hidden = false;
    const several = patterns.length > 1;
    const wrong = patterns.flatMap(({ steps }) => steps).filter(({ elsewhere }) => elsewhere?.length);
    fill(this.body,
      tried.namespaces ? this.namespaces(tried) : null,
      wrong.length > 1 ? h('p', {}, h('button', { type: 'button', onclick: () => this.putRight(wrong, tried.namespaces) }, 'Put all names into their namespaces')) : null,
      patterns.map(({ pattern, steps }) => h('div', { class: 'pattern' }, several ? h('h3', {}, h('code', {}, pattern)) : null,
        h('ul', { class: 'steps' }, steps.map((step) => this.step(step, tried.namespaces || []))))),
      validation.valid ? decision(validation, evaluated) : h('p', { class: 'note' }, 'It is explained when it is valid.'));
  }

  step({ step, depth, found, satisfied, hint, elsewhere }, namespaces) {
    const indent = h('i', { class: 'indent' });
    indent.style.width = `${depth * 1.1}rem`;
    const line = h('li', { class: satisfied ? 'yes' : found ? 'part' : 'no' },
      h('div', {}, indent, h('span', { class: 'sign', role: 'img', 'aria-label': satisfied ? 'satisfied' : 'not satisfied' }, satisfied ? '✓' : '✗'),
        h('code', {}, shortened(step, this.editor.bound)),
        h('span', { class: 'found' }, found === satisfied ? many(found, 'found', 'found') : `${count(found)} found, ${count(satisfied)} satisfied`)));
    if (hint) {
      const remedies = (elsewhere || []).map((uri) => this.remedy(localName(step), uri, namespaces));
      line.append(h('p', { class: 'hint' }, hint.replace(/;? ?(bind a prefix to it \(-n PREFIX=URI\) and use that in the expression|leave out the prefix)$/, ''), remedies));
    }
    return line;
  }

  /** A button that puts a name right: another prefix, or none. */
  remedy(local, uri, namespaces) {
    const prefix = this.prefixOf(uri, namespaces);
    const apply = () => {
      this.rename(local, uri, namespaces);
      this.editor.onChange();
      this.editor.input.focus();
    };
    return h('button', { type: 'button', class: 'small', onclick: apply }, 'Write ', h('code', {}, prefix ? `${prefix}:${local}` : local));
  }

  /** All of them at once, each into the namespace in which it is most often. */
  putRight(steps, namespaces) {
    for (const { step, elsewhere } of steps) this.rename(localName(step), elsewhere[0], namespaces);
    this.editor.onChange();
    this.editor.input.focus();
  }

  prefixOf(uri, namespaces) {
    const known = Object.entries(this.editor.bound).find(([, bound]) => bound === uri);
    const written = namespaces.find((namespace) => namespace.uri === uri)?.prefix;
    return uri && (known ? known[0] : free(written || madeUp(uri), this.editor.bound));
  }

  rename(local, uri, namespaces) {
    const { xpath, namespaces: bound, ordered } = this.editor.value;
    const prefix = this.prefixOf(uri, namespaces);
    this.editor.value = { xpath: renamed(xpath, local, prefix), ordered, namespaces: uri ? { ...bound, [prefix]: uri } : bound };
  }

  /** The namespaces that the document has; with a click the missing prefix is bound to one. */
  namespaces({ namespaces, validation }) {
    const error = validation.error || {};
    const missing = error.code === 'unbound-prefix' ? prefixAt(this.editor.value.xpath, error.column) : null;
    const rows = namespaces.slice(0, 20).map(({ uri, prefix, elements }) => h('tr', {},
      h('td', {}, h('code', {}, uri || 'no namespace')), h('td', {}, prefix ? h('code', {}, prefix) : '–'),
      h('td', { class: 'n' }, count(elements)),
      h('td', {}, missing && uri ? h('button', { type: 'button', class: 'small', onclick: () => this.editor.bind(missing, uri) },
        'Bind ', h('code', {}, missing)) : null)));
    return h('div', { class: 'namespaces' }, h('h3', {}, 'Namespaces of the document'),
      h('div', { class: 'scroll', tabindex: '0', role: 'group', 'aria-label': 'Namespaces of the document' }, h('table', {},
        h('thead', {}, h('tr', {}, h('th', {}, 'namespace'), h('th', {}, 'prefix there'), h('th', { class: 'n' }, 'elements'), h('td', {}))),
        h('tbody', {}, rows))));
  }
}

function decision({ indexed, exact, evaluated: residual, reason, always, never }, outcome) {
  const lines = [];
  if (never) lines.push(h('dt', {}, 'never'), h('dd', {}, 'no document can match it'));
  else if (always && exact) lines.push(h('dt', {}, 'always'), h('dd', {}, 'every document matches it'));
  else {
    lines.push(h('dt', {}, 'indexed'), h('dd', {}, always ? 'nothing: it is evaluated on every document' : indexed.map((pattern) => h('code', {}, pattern))));
    lines.push(h('dt', {}, 'evaluated'), h('dd', {}, exact ? 'nothing: the index decides alone'
      : [h('code', {}, residual), outcome === null || outcome === undefined ? '' : ` is ${outcome}`,
        h('small', {}, ` because ${reason} cannot be indexed`)]));
  }
  return h('dl', { class: 'decision' }, lines);
}

/** {uri}name with the prefix of the expression, which people know. */
function shortened(step, bound) {
  return step.replace(/\{([^}]*)\}/g, (whole, uri) => {
    const known = Object.entries(bound).find(([, value]) => value === uri);
    return known ? `${known[0]}:` : whole;
  });
}

const localName = (step) => step.replace(/^\/+/, '').replace(/^\{[^}]*\}/, '');

function madeUp(uri) {
  const words = (uri.match(/[A-Za-z]{2,}/g) || []).map((word) => word.toLowerCase()).filter((word) => !word.startsWith('xml'));
  return words.length ? words[words.length - 1].slice(0, 10) : 'ns';
}

function free(wanted, bound) {
  let prefix = wanted;
  for (let number = 2; bound[prefix] !== undefined; number++) prefix = `${wanted}${number}`;
  return prefix;
}

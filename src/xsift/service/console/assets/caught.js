// What would it have caught? The expression over the latest documents, before one subscribes.

import { post } from './api.js';
import { bytes, count, fill, h, later, when } from './dom.js';

export class Caught {
  constructor({ onLook }) {
    this.onLook = onLook;
    this.number = h('select', { 'aria-label': 'How many documents', onchange: () => this.ask() },
      [100, 1000, 10000].map((number) => h('option', { value: number, selected: number === 1000 }, `last ${count(number)}`)));
    this.body = h('div', {});
    this.element = h('section', { class: 'card caught', 'aria-label': 'What would it have caught?' },
      h('div', { class: 'top' }, h('h2', {}, 'What would it have caught?'), this.number), this.body);
    this.wanted = null;
    this.asking = null;
    this.asked = '';
    this.soon = later(() => this.ask(), 400);
  }

  /** Somebody writes: what is shown is of an earlier expression. */
  stale() {
    this.soon.cancel();
    this.element.setAttribute('aria-busy', 'true');
  }

  /** An expression that is valid, or null. It is asked for when nobody writes for a moment. */
  about(wanted) {
    this.wanted = wanted;
    if (wanted && JSON.stringify(wanted) === this.asked) this.element.removeAttribute('aria-busy');
    else this.soon();
  }

  close() {
    this.soon.cancel();
    if (this.asking) this.asking.abort();
  }

  async ask() {
    if (this.asking) this.asking.abort();
    if (!this.wanted) {
      this.asked = '';
      this.element.removeAttribute('aria-busy');
      fill(this.body, h('p', { class: 'note' }, 'It is asked when the expression is valid.'));
      return;
    }
    this.asked = JSON.stringify(this.wanted);
    this.asking = new AbortController();
    const { signal } = this.asking;
    this.element.setAttribute('aria-busy', 'true');
    try {
      const answer = await post('subscriptions/preview', { ...this.wanted, documents: Number(this.number.value) }, { signal });
      if (!signal.aborted) this.show(answer);
    } catch (problem) {
      if (problem.name === 'AbortError') return;
      fill(this.body, h('p', { class: 'note' }, String(problem)));
    }
    this.element.removeAttribute('aria-busy');
  }

  show({ documents, matched, caught, broken, warning }) {
    if (!documents) {
      fill(this.body, h('p', { class: 'note' }, 'There are no documents yet that you may see: they are kept when they are published.'));
      return;
    }
    const bar = h('i', {});
    bar.style.width = `${Math.max(matched ? 0.5 : 0, 100 * matched / documents)}%`;
    fill(this.body,
      h('p', { class: 'figure', role: 'status' }, h('b', {}, count(matched)), ` of the last ${count(documents)} documents`,
        broken ? `; on ${count(broken)} it could not be decided` : ''),
      h('div', { class: 'bar', 'aria-hidden': 'true' }, bar),
      warning ? h('p', { class: 'warning', role: 'alert' }, `${warning[0].toUpperCase()}${warning.slice(1)}.`) : null,
      caught.length ? h('ul', { class: 'list', tabindex: '0', 'aria-label': 'Documents that it would have caught' }, caught.map(({ id, label, received, size }) => h('li', {},
        h('button', { type: 'button', class: 'quiet link', onclick: () => this.onLook(id, label) }, label || id),
        h('small', {}, `${when(received)}, ${bytes(size)}`)))) : null,
      matched > caught.length ? h('p', { class: 'note' }, `The latest ${caught.length} are listed.`) : null);
  }
}

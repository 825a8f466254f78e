// A document as one looks at it: coloured, with what is selected marked, and every element and attribute to be pointed
// at. Only the rows that can be seen are in the page, so its size does not matter.

import { h } from './dom.js';
import { COMMENT, DATA, DOCTYPE, END, INSTRUCTION, scan, START } from './xml-scan.js';

const ROW = 20; // pixels; style.css says the same
const MORE = 12; // rows above and below those that are seen
const TALLEST = 8_000_000; // pixels: browsers do not scroll further; beyond, a pixel stands for more rows
const CLASSES = { [COMMENT]: 'c', [DATA]: 'd', [INSTRUCTION]: 'i', [DOCTYPE]: 'i', [END]: 't' };

export class DocumentView {
  /** `onPoint(element, attribute)` is called when somebody points at one. */
  constructor({ label, onPoint }) {
    this.onPoint = onPoint;
    this.sheet = h('div', { class: 'rows' });
    this.space = h('div', { class: 'space' }, this.sheet);
    this.heard = h('p', { class: 'unseen', 'aria-live': 'polite' });
    this.box = h('div', { class: 'view', tabindex: '0', role: 'group', 'aria-label': label,
      'aria-description': 'Up and down go from element to element, left to the parent, Enter proposes expressions.' }, this.space);
    this.element = h('div', { class: 'view-frame' }, this.box, this.heard);
    this.clear();
    this.box.addEventListener('scroll', () => this.draw(), { passive: true });
    this.box.addEventListener('click', (event) => this.clicked(event));
    this.box.addEventListener('keydown', (event) => this.pressed(event));
    this.watcher = new ResizeObserver(() => this.measure());
    this.watcher.observe(this.box);
  }

  close() {
    this.watcher.disconnect();
    if (this.reading) this.reading.abort();
  }

  clear() {
    Object.assign(this, { text: '', scan: null, within: [], hits: [], hitStarts: new Set(), cursor: 0, note: null });
    this.rowStarts = Uint32Array.of(0);
    this.columns = 80;
  }

  /** Shows a text; resolves when its elements are known. */
  async show(text) {
    if (this.reading) this.reading.abort();
    this.reading = new AbortController();
    const { signal } = this.reading;
    this.clear();
    this.text = text;
    this.box.scrollTop = 0;
    this.measure(true);
    const found = await scan(text, signal);
    if (!found || signal.aborted) return;
    this.scan = found;
    this.pointedOut = null;
    this.draw(true);
  }

  /** Marks what is selected: [start, end, path], as the server told. */
  mark(nodes) {
    const ranges = [];
    this.hitStarts = new Set();
    for (const [start, end, path] of nodes) {
      const exact = this.exactly(start, path);
      if (exact) ranges.push(...exact);
      else { ranges.push([start, end]); this.hitStarts.add(start); }
    }
    this.hits = nodes.map(([start, , path]) => (this.exactly(start, path) || [[start]])[0]?.[0] ?? start);
    ranges.sort((one, other) => one[0] - other[0]);
    const merged = [];
    for (const range of ranges) {
      const last = merged[merged.length - 1];
      if (last && range[0] <= last[1]) last[1] = Math.max(last[1], range[1]);
      else merged.push([...range]);
    }
    this.within = merged;
    this.draw(true);
  }

  /** Where an attribute, text or comment is: the server tells the element that has it. */
  exactly(start, path) {
    const [, step, which] = /([^/]*?)(?:\[(\d+)\])?$/.exec(path);
    if (!this.scan || !/^@|\)$/.test(step)) return null;
    const token = this.scan.tokenAt(start);
    if (token < 0 || this.scan.kinds[token] !== START) return null;
    if (step.startsWith('@')) {
      const local = step.slice(1).split(':').pop();
      const found = this.scan.tag(token).attributes.filter(({ name }) => name === step.slice(1) || name.split(':').pop() === local);
      return found.length ? [[found[0].start, found[0].end]] : null;
    }
    const found = step === 'text()' ? this.scan.ownText(start) : this.scan.ownTokens(start, step === 'comment()' ? COMMENT : INSTRUCTION);
    return which && found.length >= which ? [found[which - 1]] : found;
  }

  /** Shows an error in its place, below its row. */
  wrong(place, message) {
    this.note = message === undefined ? null : { place: Math.min(place, this.text.length), message };
    this.lay();
    if (this.note) this.reveal(this.note.place);
  }

  // Rows: lines, and long lines broken where the pane ends

  measure(force = false) {
    const probe = h('span', { class: 'probe' }, 'm'.repeat(50));
    this.sheet.append(probe);
    const width = probe.getBoundingClientRect().width / 50 || 8;
    probe.remove();
    const columns = Math.max(20, Math.floor((this.box.clientWidth - 28) / width));
    if (!force && columns === this.columns && this.laid) { this.draw(true); return; }
    this.columns = columns;
    const starts = [];
    for (let begin = 0; begin <= this.text.length;) {
      const found = this.text.indexOf('\n', begin);
      const end = found < 0 ? this.text.length : found;
      starts.push(begin);
      for (let cut = begin + columns; cut < end; cut += columns) {
        if ((this.text.charCodeAt(cut) & 0xfc00) === 0xdc00) cut++; // not between the halves of a character
        starts.push(cut);
      }
      begin = end + 1;
    }
    this.rowStarts = Uint32Array.from(starts);
    this.lay();
  }

  lay() {
    const rows = this.rowStarts.length + (this.note ? 1 : 0);
    this.rows = rows;
    this.noteRow = this.note ? this.rowOf(this.note.place) + 1 : -1;
    this.height = Math.min(rows * ROW, TALLEST);
    this.space.style.height = `${this.height + 16}px`;
    this.laid = true;
    this.draw(true);
  }

  rowOf(place) {
    let low = 0, high = this.rowStarts.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.rowStarts[middle] <= place) low = middle + 1;
      else high = middle;
    }
    return Math.max(0, low - 1);
  }

  rowEnd(row) {
    const end = row + 1 < this.rowStarts.length ? this.rowStarts[row + 1] : this.text.length;
    return end > this.rowStarts[row] && this.text.charCodeAt(end - 1) === 10 ? end - 1 : end;
  }

  get scale() {
    const most = Math.max(1, this.height - this.box.clientHeight);
    return this.height < TALLEST ? ROW : most / Math.max(1, this.rows - this.box.clientHeight / ROW);
  }

  reveal(place) {
    const row = this.rowOf(place) + (this.noteRow >= 0 && this.rowOf(place) >= this.noteRow ? 1 : 0);
    const top = row * this.scale;
    if (top < this.box.scrollTop || top + 2 * ROW > this.box.scrollTop + this.box.clientHeight) {
      this.box.scrollTop = Math.max(0, top - this.box.clientHeight / 3);
    }
    this.draw(true);
  }

  draw(force = false) {
    const first = Math.max(0, Math.floor(this.box.scrollTop / this.scale) - MORE);
    const last = Math.min(this.rows, first + Math.ceil(this.box.clientHeight / ROW) + 2 * MORE);
    if (!force && first === this.first && last === this.last) return;
    this.first = first;
    this.last = last;
    const made = [];
    for (let row = first; row < last; row++) made.push(this.drawnRow(row));
    this.sheet.replaceChildren(...made);
    const top = this.scale === ROW ? first * ROW : this.box.scrollTop - (this.box.scrollTop / this.scale - first) * ROW;
    this.sheet.style.transform = `translateY(${Math.max(0, top)}px)`;
  }

  drawnRow(shown) {
    if (shown === this.noteRow) {
      const column = this.note.place - this.rowStarts[shown - 1];
      const room = this.columns - column;
      const message = room > this.note.message.length + 3 || column < 20
        ? `${' '.repeat(column)}▲ ${this.note.message}`
        : `${' '.repeat(Math.max(0, column - this.note.message.length - 1))}${this.note.message} ▲`;
      return h('div', { class: 'row wrong' }, message);
    }
    const row = this.noteRow >= 0 && shown > this.noteRow ? shown - 1 : shown;
    const start = this.rowStarts[row], end = this.rowEnd(row);
    const line = h('div', { class: shown + 1 === this.noteRow ? 'row broken' : 'row' });
    if (!this.scan) { line.append(this.text.slice(start, end)); return line; }
    let place = start;
    for (let token = this.scan.tokenFrom(start); token < this.scan.starts.length && this.scan.starts[token] < end; token++) {
      this.pieces(line, place, Math.max(place, this.scan.starts[token]), '', null);
      place = Math.min(end, this.scan.ends[token]);
      this.drawnToken(line, token, start, place);
    }
    this.pieces(line, place, end, '', null);
    return line;
  }

  drawnToken(line, token, start, end) {
    const begin = Math.max(start, this.scan.starts[token]);
    const element = this.scan.owners[token];
    const here = this.cursor === element && this.scan.kinds[token] === START ? ' here' : '';
    if (this.scan.kinds[token] !== START) {
      this.pieces(line, begin, end, CLASSES[this.scan.kinds[token]], this.scan.kinds[token] === END ? { element } : null);
      return;
    }
    const hit = this.hitStarts.has(this.scan.starts[token]) ? ' hit' : '';
    let place = begin;
    for (const attribute of this.scan.tag(token).attributes) {
      if (attribute.end <= place || attribute.start >= end) continue;
      this.pieces(line, place, Math.max(place, attribute.start), `t${hit}${here}`, { element });
      const pointed = { element, attribute: attribute.name };
      const middle = Math.min(end, Math.max(place, attribute.value));
      this.pieces(line, Math.max(place, attribute.start), middle, `a${hit}${here}`, pointed);
      this.pieces(line, middle, Math.min(end, attribute.end), `v${hit}${here}`, pointed);
      place = Math.min(end, attribute.end);
    }
    this.pieces(line, place, end, `t${hit}${here}`, { element });
  }

  /** A piece of a row, cut where marks begin and end. */
  pieces(line, start, end, kind, pointed) {
    for (let place = start; place < end;) {
      const [marked, until] = this.marked(place);
      const stop = Math.min(end, until);
      const piece = h('span', { class: `${kind}${marked ? ' m' : ''}`.trim() || undefined }, this.text.slice(place, stop));
      if (pointed) {
        piece.dataset.element = pointed.element;
        if (pointed.attribute) piece.dataset.attribute = pointed.attribute;
      }
      line.append(piece);
      place = stop;
    }
  }

  /** Whether a place is in a mark, and until where that is so. */
  marked(place) {
    let low = 0, high = this.within.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.within[middle][1] > place) high = middle;
      else low = middle + 1;
    }
    if (low === this.within.length) return [false, Infinity];
    const [start, end] = this.within[low];
    return start <= place ? [true, end] : [false, start];
  }

  // Pointing

  clicked(event) {
    const piece = event.target.closest('[data-element]');
    if (!piece || String(getSelection())) return;
    this.cursor = Number(piece.dataset.element);
    this.draw(true);
    this.onPoint(this.cursor, piece.dataset.attribute || null);
  }

  pressed(event) {
    if (!this.scan || this.scan.elements.length < 2 || event.ctrlKey || event.metaKey || event.altKey) return;
    const last = this.scan.elements.length - 1;
    const moves = {
      ArrowDown: () => Math.min(last, this.cursor + 1),
      ArrowUp: () => Math.max(1, this.cursor - 1),
      ArrowLeft: () => this.scan.elements[this.cursor]?.parent || 1,
      ArrowRight: () => Math.min(last, this.cursor + 1),
    };
    if (moves[event.key]) {
      this.cursor = moves[event.key]();
      this.heard.textContent = this.scan.path(this.cursor);
      this.reveal(this.scan.starts[this.scan.elements[this.cursor].token]);
    } else if (event.key === 'Enter' && this.cursor) {
      this.onPoint(this.cursor, null);
    } else return;
    event.preventDefault();
  }
}

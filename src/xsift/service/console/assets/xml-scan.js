// What is where in the text of a document: tags, comments, elements. Lexical only: the server says what is well-formed.
// A large document is read in slices, so that the page answers meanwhile.

export const START = 1, END = 2, COMMENT = 3, DATA = 4, INSTRUCTION = 5, DOCTYPE = 6;
const SLICE_MILLISECONDS = 8;
const breathe = () => new Promise((resolve) => { setTimeout(resolve); });

/** The markup of a text: kinds, starts and ends of its tokens; and by number (from 1) the elements. */
export async function scan(text, signal) {
  const kinds = [], starts = [], ends = [], owners = [];
  const elements = [{ token: -1, close: -1, parent: 0 }]; // number 0 is the document
  let position = 0, open = 0, until = performance.now() + SLICE_MILLISECONDS, steps = 0;
  const note = (kind, start, end, owner) => {
    kinds.push(kind); starts.push(start); ends.push(end); owners.push(owner);
  };
  while (position < text.length) {
    if ((++steps & 255) === 0 && performance.now() > until) {
      await breathe();
      if (signal && signal.aborted) return null;
      until = performance.now() + SLICE_MILLISECONDS;
    }
    const start = text.indexOf('<', position);
    if (start < 0) break;
    const next = text.charCodeAt(start + 1);
    if (next === 0x21) { // !
      const [kind, end] = special(text, start);
      note(kind, start, end, open);
      position = end;
    } else if (next === 0x3f) { // ?
      position = after(text, '?>', start);
      note(INSTRUCTION, start, position, open);
    } else if (next === 0x2f) { // /
      position = after(text, '>', start);
      if (open) elements[open].close = kinds.length;
      note(END, start, position, open);
      open = elements[open].parent;
    } else {
      position = tagEnd(text, start);
      const number = elements.length;
      elements.push({ token: kinds.length, close: -1, parent: open });
      note(START, start, position, number);
      if (text.charCodeAt(position - 2) === 0x2f) elements[number].close = kinds.length - 1;
      else open = number;
    }
  }
  return new Scan(text, kinds, Uint32Array.from(starts), Uint32Array.from(ends), owners, elements);
}

function after(text, mark, start) {
  const found = text.indexOf(mark, start);
  return found < 0 ? text.length : found + mark.length;
}

function special(text, start) {
  if (text.startsWith('<!--', start)) return [COMMENT, after(text, '-->', start + 4)];
  if (text.startsWith('<![CDATA[', start)) return [DATA, after(text, ']]>', start)];
  const bracket = text.indexOf('[', start), close = text.indexOf('>', start);
  if (bracket >= 0 && bracket < close) return [DOCTYPE, after(text, '>', Math.max(text.indexOf(']', bracket), start))];
  return [DOCTYPE, after(text, '>', start)];
}

function tagEnd(text, start) {
  let quote = 0;
  for (let place = start + 1; place < text.length; place++) {
    const code = text.charCodeAt(place);
    if (quote) { if (code === quote) quote = 0; }
    else if (code === 0x22 || code === 0x27) quote = code;
    else if (code === 0x3e) return place + 1;
  }
  return text.length;
}

/** A text that was read. */
export class Scan {
  constructor(text, kinds, starts, ends, owners, elements) {
    Object.assign(this, { text, kinds, starts, ends, owners, elements });
    this.tags = new Map();
  }

  /** The first token that ends after a place. */
  tokenFrom(place) {
    let low = 0, high = this.starts.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.ends[middle] > place) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  /** The start tag at a place: its token, or -1. */
  tokenAt(place) {
    const token = this.tokenFrom(place);
    return token < this.starts.length && this.starts[token] <= place ? token : -1;
  }

  /** Name and attributes of a start tag, with their places. */
  tag(token) {
    let known = this.tags.get(token);
    if (known) return known;
    const start = this.starts[token];
    const text = this.text.slice(start, Math.min(this.ends[token], start + 20000));
    const name = /^<([^\s/>]*)/.exec(text)[1];
    known = { name, attributes: [] };
    const pattern = /([^\s=/>"']+)\s*=\s*("[^"]*"|'[^']*')/g;
    pattern.lastIndex = 1 + name.length;
    for (let found = pattern.exec(text); found; found = pattern.exec(text)) {
      known.attributes.push({ name: found[1], start: start + found.index, end: start + found.index + found[0].length,
        value: start + found.index + found[0].length - found[2].length });
    }
    if (this.tags.size > 5000) this.tags.clear();
    this.tags.set(token, known);
    return known;
  }

  name(element) {
    return this.tag(this.elements[element].token).name;
  }

  /** The path of an element, as people write it. */
  path(element) {
    const names = [];
    for (let up = element; up; up = this.elements[up].parent) names.unshift(this.name(up));
    return `/${names.join('/')}`;
  }

  /** The pieces of text that belong to an element itself, given by its start: what text() selects. */
  ownText(start) {
    const token = this.tokenAt(start), pieces = [];
    if (token < 0) return pieces;
    const number = this.owners[token], last = this.elements[number].close;
    let depth = 0;
    for (let place = token; place < last && pieces.length < 200; place++) {
      if (place > token && this.kinds[place] === START && this.elements[this.owners[place]].close !== place) depth++;
      if (place > token && this.kinds[place] === END) depth--;
      if (depth === 0 && this.ends[place] < this.starts[place + 1]) pieces.push([this.ends[place], this.starts[place + 1]]);
    }
    return pieces;
  }

  /** The comments or instructions that are an element's children. */
  ownTokens(start, kind) {
    const token = this.tokenAt(start), found = [];
    if (token < 0) return found;
    const number = this.owners[token], last = this.elements[number].close;
    for (let place = token + 1; place < last && found.length < 200; place++) {
      if (this.kinds[place] === kind && this.owners[place] === number) found.push([this.starts[place], this.ends[place]]);
    }
    return found;
  }
}

// Live: documents that come in, matches that go out, broken ones with their error in place; and the stream of one
// subscriber, as it arrives. It only looks: nothing is acknowledged by looking.

import { address, get, keptDocument, listen, ask } from './api.js';
import { bytes, count, fill, h, many, milliseconds, when } from './dom.js';
import { forOwner } from './subscription-form.js';

const ROWS = 200; // that are shown
const HELD = 1000; // that are kept while it is paused
const RATE_SECONDS = 10;
const MATCHES = 20; // of a delivery that are shown: it may have thousands
const EXCERPT = 400;

export function mount(screen, context) {
  const documents = new Documents(context);
  const stream = context.may('subscribe') ? new Stream(context, () => documents.clock) : null;
  fill(screen, h('h1', {}, 'Live'), documents.tiles, h('div', { class: 'halves' }, documents.element, stream?.element));
  return () => { documents.close(); stream?.close(); };
}

/** A list that takes what comes, draws some times a second, and can be paused. */
class Feed {
  constructor(title, draw) {
    this.draw = draw;
    this.waiting = [];
    this.missed = 0;
    this.paused = false;
    this.button = h('button', { type: 'button', 'aria-pressed': 'false', onclick: () => this.toggle() }, 'Pause');
    this.state = h('span', { class: 'state', role: 'status' });
    this.list = h('ul', { class: 'feed', tabindex: '0', 'aria-label': title });
    this.timer = setInterval(() => this.flush(), 200);
    this.title = title;
  }

  add(item) {
    this.waiting.push(item);
    if (this.waiting.length > HELD) { this.waiting.shift(); this.missed++; }
  }

  toggle() {
    this.paused = !this.paused;
    this.button.setAttribute('aria-pressed', String(this.paused));
    this.button.textContent = this.paused ? 'Go on' : 'Pause';
    this.flush();
  }

  flush() {
    if (this.paused) {
      this.state.textContent = `paused, ${many(this.waiting.length + this.missed, 'new one')}${this.missed ? `, of which ${count(this.missed)} will not be shown` : ''}`;
      return;
    }
    this.state.textContent = '';
    if (!this.waiting.length) return;
    const some = this.waiting.slice(-ROWS);
    this.waiting = [];
    this.missed = 0;
    for (const item of some) this.list.prepend(this.draw(item));
    while (this.list.children.length > ROWS) this.list.lastElementChild.remove();
  }

  clear() {
    this.waiting = [];
    this.missed = 0;
    this.list.replaceChildren();
  }

  close() {
    clearInterval(this.timer);
  }
}

class Documents {
  constructor(context) {
    this.context = context;
    this.clock = 0; // seconds that the server is ahead of this machine
    this.pulses = [];
    this.seen = new Set();
    this.recent = [];
    this.feed = new Feed('Documents', (event) => this.row(event));
    this.only = h('input', { type: 'checkbox', onchange: () => this.feed.list.classList.toggle('only-broken', this.only.checked) });
    this.values = {};
    this.tiles = h('dl', { class: 'tiles' }, this.tile('documents', 'documents a second'), this.tile('matches', context.isAdmin ? 'matches a second' : 'your matches a second'),
      this.tile('broken', 'broken, last 10 s'), context.isAdmin ? this.tile('deliveries', 'deliveries a second') : null, context.isAdmin ? this.tile('lag', 'lag of deliveries, p99') : null);
    this.empty = h('p', { class: 'empty' }, 'Nothing has come in yet. What is published appears here.');
    this.element = h('section', { class: 'card', 'aria-label': 'Documents coming in' },
      h('div', { class: 'top' }, h('h2', {}, 'Documents'), this.feed.state, h('span', { class: 'grow' }),
        h('label', { class: 'check' }, this.only, 'Broken only'), this.feed.button), this.empty, this.feed.list);
    this.stop = listen(() => 'activity', { document: (event) => this.take(event), pulse: (event) => this.pulse(event) });
    this.timer = setInterval(() => this.rates(), 1000);
  }

  tile(name, text) {
    this.values[name] = h('dd', {}, '–');
    return h('div', {}, h('dt', {}, text), this.values[name]);
  }

  take(event) {
    if (this.seen.has(event.id)) return; // a stream that is opened again begins with what was there
    this.seen.add(event.id);
    if (this.seen.size > 5000) this.seen = new Set([...this.seen].slice(-2000));
    this.empty.hidden = true;
    this.recent.push(event);
    if (this.recent.length > 20_000) this.recent.splice(0, 10_000);
    this.feed.add(event);
  }

  pulse({ now, rates }) {
    // A pulse that took long to arrive makes it look less than it is.
    this.pulses = [...this.pulses.slice(-29), now - Date.now() / 1000];
    this.clock = Math.max(...this.pulses);
    if (this.values.lag && rates.at) {
      this.values.lag.textContent = milliseconds(rates.lag_p99);
      this.values.deliveries.textContent = rate(rates.deliveries);
    }
  }

  rates() {
    const since = Date.now() / 1000 + this.clock - RATE_SECONDS;
    this.recent = this.recent.filter((event) => event.received > since);
    const whole = this.recent.filter((event) => !event.error);
    this.values.documents.textContent = rate(whole.length / RATE_SECONDS);
    this.values.matches.textContent = rate(whole.reduce((sum, event) => sum + matchesOf(event), 0) / RATE_SECONDS);
    this.values.broken.textContent = count(this.recent.length - whole.length);
    this.values.broken.className = this.recent.length > whole.length ? 'bad' : '';
  }

  row(event) {
    const more = h('div', { class: 'more' });
    const details = h('details', { ontoggle: () => details.open && this.open(event, more) },
      h('summary', {}, h('time', {}, when(event.received)), h('span', { class: 'label' }, event.label || event.id),
        event.error ? h('b', { class: 'bad' }, 'broken') : h('span', { class: matchesOf(event) ? 'hits' : 'faint' }, many(matchesOf(event), 'match', 'matches'),
          event.deliveries ? h('small', {}, ` → ${many(event.deliveries, 'subscriber')}`) : null),
        h('small', {}, bytes(event.size))),
      event.error ? h('p', { class: 'bad' }, told(event.error)) : null, more);
    return h('li', { class: event.error ? 'broken' : '' }, details);
  }

  async open(event, more) {
    if (more.childElementCount) return;
    fill(more, h('p', { class: 'note' }, 'Fetching …'));
    try {
      const { text } = await keptDocument(event.id);
      if (event.error) { fill(more, inPlace(text, event.error)); return; }
      const matched = await ask('POST', 'match', { body: text, type: 'application/xml; charset=utf-8' });
      fill(more,
        h('p', {}, matched.matches.length ? 'Now matched by ' : 'Matched by nothing now.', matched.matches.slice(0, 50).map(({ id }) => [h('code', {}, id), ' ']), matched.matches.length > 50 ? '…' : ''),
        matched.failures ? h('p', { class: 'note' }, `${many(matched.failures.length, 'subscription')} could not be decided on it.`) : null,
        h('pre', { tabindex: '0', 'aria-label': 'Beginning of the document' }, text.slice(0, EXCERPT) + (text.length > EXCERPT ? '…' : '')),
        h('button', { type: 'button', class: 'small', onclick: () => this.context.tryThis({ xml: text, label: event.label || event.id, xpath: '' }) }, 'Open in Try'));
    } catch (problem) {
      fill(more, h('p', { class: 'note' }, String(problem)));
    }
  }

  close() {
    this.stop();
    this.feed.close();
    clearInterval(this.timer);
  }
}

const matchesOf = (event) => event.matches ?? event.own_matches ?? 0;
const rate = (number) => (number >= 10 ? count(Math.round(number)) : number.toFixed(1));
const told = ({ message, line, column, hint }) => `${message}${line ? `, line ${line}, column ${column}` : ''}${hint ? ` (${hint})` : ''}`;

/** The lines around an error, with the error under its column. */
function inPlace(text, { line, column, message }) {
  const lines = text.split('\n');
  if (!line || line > lines.length) return h('p', { class: 'note' }, 'Its beginning is kept, the error is further on.');
  const first = Math.max(0, line - 3);
  const from = Math.max(0, column - 60);
  const cut = (each) => `${from ? '…' : ''}${each.slice(from, from + 120)}`;
  const shown = lines.slice(first, line).map((each, place) => `${String(first + place + 1).padStart(5)}  ${cut(each)}\n`);
  return h('pre', { class: 'place', tabindex: '0', 'aria-label': 'Where it is broken' }, shown, h('b', { class: 'bad' }, `${' '.repeat(7 + column - 1 - from + (from ? 1 : 0))}▲ ${message}`));
}

/** What one subscriber is told, as it arrives. */
class Stream {
  constructor(context, clock) {
    this.context = context;
    this.clock = clock;
    this.feed = new Feed('Stream', (delivery) => this.card(delivery));
    this.last = '';
    this.stop = null;
    this.choice = h('select', { 'aria-label': 'Subscriber', onchange: () => this.begin() }, h('option', { value: '' }, 'choose a subscriber …'));
    this.empty = h('p', { class: 'empty' }, 'Choose a subscriber to see what it is told, as it is told. Looking acknowledges nothing.');
    this.element = h('section', { class: 'card', 'aria-label': 'Stream of a subscriber' },
      h('div', { class: 'top' }, h('h2', {}, 'Stream'), this.feed.state, h('span', { class: 'grow' }), this.choice, this.feed.button), this.empty, this.feed.list);
    this.fill();
  }

  async fill() {
    const { items } = await get('subscribers', { most: 500 });
    this.choice.append(...items.map((item, place) => {
      const option = h('option', { value: String(place) }, this.context.isAdmin ? `${item.owner} / ${item.id}` : item.id);
      option.subscriber = item;
      return option;
    }));
    const own = items.findIndex((item) => item.owner === this.context.session.owner && item.id === item.owner);
    const only = items.length === 1 ? 0 : own;
    if (only >= 0) { this.choice.value = String(only); this.begin(); }
  }

  begin() {
    this.close(false);
    this.feed.clear();
    this.last = '';
    const { subscriber } = this.choice.selectedOptions[0];
    this.empty.hidden = false;
    this.empty.textContent = subscriber ? `Waiting for deliveries to ${subscriber.id} …` : 'Choose a subscriber to see what it is told.';
    if (!subscriber) return;
    const path = `subscribers/${encodeURIComponent(subscriber.id)}/events`;
    this.stop = listen(() => address(path, { peek: 'true', after: this.last, ...forOwner(subscriber.owner, this.context) }), {
      match: (delivery, id) => { this.last = id; this.empty.hidden = true; this.feed.add({ ...delivery, arrived: Date.now() / 1000 + this.clock() }); },
      gap: (gap, id) => { this.last = id; this.feed.add({ gap }); },
    }, (state) => { if (state === 'closed') this.empty.textContent = 'The stream was closed; it is opened again …'; });
  }

  card(delivery) {
    if (delivery.gap) return h('li', { class: 'gap' }, `${many(delivery.gap.dropped, 'delivery', 'deliveries')} before these are gone from the backlog`);
    const { id, document: source, matches, arrived, xml } = delivery;
    const lag = arrived - source.received;
    return h('li', { class: 'delivery' },
      h('div', { class: 'head' }, h('time', {}, when(source.received)), h('b', { class: 'label' }, source.label || source.id),
        h('small', { title: 'from receipt to here' }, lag < 60 ? `after ${milliseconds(Math.max(0, lag))}` : 'from the backlog'), h('small', {}, id)),
      matches.slice(0, MATCHES).map((match) => h('div', { class: 'match' }, h('code', {}, match.id),
        (match.fragments || []).slice(0, 5).map((fragment) => h('pre', { title: fragment.path }, fragment.xml.length > 1000 ? `${fragment.xml.slice(0, 1000)}…` : fragment.xml)),
        (match.fragments || []).length > 5 || match.fragments_left_out ? h('small', {}, `and ${count(Math.max(0, (match.fragments || []).length - 5) + (match.fragments_left_out || 0))} more`) : null,
        match.error ? h('p', { class: 'bad' }, match.error.message) : null)),
      matches.length > MATCHES ? h('p', { class: 'note' }, `and ${many(matches.length - MATCHES, 'subscription')} more`) : null,
      xml ? h('pre', {}, xml.length > EXCERPT ? `${xml.slice(0, EXCERPT)}…` : xml) : null);
  }

  close(forGood = true) {
    if (this.stop) this.stop();
    this.stop = null;
    if (forGood) this.feed.close();
  }
}

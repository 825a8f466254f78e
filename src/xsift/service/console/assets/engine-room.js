// The engine room: how fast, how full, how large, and what cannot be delivered.

import { ask, get } from './api.js';
import { bytes, clamped, confirmed, count, fill, h, many, milliseconds, say, when } from './dom.js';
import { Plot } from './plot.js';

const KEPT = 450;
const EVERY = 2000;
const rate = (value) => (value >= 10 ? count(Math.round(value)) : value.toFixed(1));

export function mount(screen, context) {
  const failing = new Failing(context);
  if (!context.isAdmin) {
    fill(screen, h('h1', {}, 'Engine room'), h('p', { class: 'note' }, 'The engine itself is shown to operators (role admin). Here are your deliveries that fail.'), failing.element);
    failing.load();
    return () => {};
  }
  const plots = [
    new Plot('Documents a second', [['documents', 'taken'], ['broken', 'broken']], rate),
    new Plot('Matches a second', [['matches', 'matches'], ['candidates', 'evaluated']], rate),
    new Plot('Deliveries a second', [['deliveries', 'made'], ['sent', 'sent']], rate),
    new Plot('Matching a document', [['match_p50', 'p50'], ['match_p99', 'p99']], milliseconds),
    new Plot('From receipt to disk', [['publish_p50', 'p50'], ['publish_p99', 'p99']], milliseconds),
    new Plot('Lag of deliveries', [['lag_p50', 'p50'], ['lag_p99', 'p99']], milliseconds),
    new Plot('Queues', [['match_queue', 'to match'], ['write_queue', 'to write']], count),
    new Plot('Failures a second', [['retries', 'retried'], ['dead', 'given up']], rate),
    new Plot('Requests a second', [['requests', '']], rate),
  ];
  const tiles = h('dl', { class: 'tiles' });
  const memory = h('div', {});
  const waiting = h('div', {});
  const versions = h('div', {});
  const state = h('p', { class: 'bad', role: 'alert' });
  const samples = {};
  let rounds = 0, stopped = false, timer;

  fill(screen, h('h1', {}, 'Engine room'), state, tiles, h('div', { class: 'plots' }, plots.map((plot) => plot.element)),
    h('div', { class: 'halves' },
      h('section', { class: 'card', 'aria-label': 'Memory' }, h('h2', {}, 'Memory of the set'), memory),
      h('section', { class: 'card', 'aria-label': 'Waiting' }, h('h2', {}, 'Deliveries that wait'), waiting, h('h2', {}, 'Last changes of the set'), versions)),
    failing.element);

  async function look() {
    try {
      const after = samples.at?.length ? samples.at[samples.at.length - 1] : 0;
      const [history, status] = await Promise.all([get('history', { after }), get('status')]);
      take(history.samples);
      for (const plot of plots) plot.draw(samples);
      show(status);
      if (rounds++ % 5 === 0) { await failing.load(); await lastVersions(); }
      fill(state, status.ready ? '' : 'The server is not ready: it is starting or stopping, or the disk takes no writes.');
    } catch (problem) {
      if (problem.status !== 401) fill(state, String(problem));
    }
    if (!stopped) timer = setTimeout(() => (document.hidden ? wait() : look()), EVERY);
  }

  function wait() {
    document.addEventListener('visibilitychange', () => { if (!stopped) look(); }, { once: true });
  }

  function take(more) {
    const added = (more.at || []).length, before = (samples.at || []).length;
    for (const name of new Set([...Object.keys(samples), ...Object.keys(more)])) {
      const old = samples[name] || Array(before).fill(null);
      samples[name] = [...old, ...(more[name] || Array(added).fill(null))].slice(-KEPT);
    }
  }

  function show({ set, queues, totals, seconds }) {
    const facts = [
      ['subscriptions', count(set.subscriptions)], ['version of the set', count(set.version)],
      ['cannot be used', count(set.refused), set.refused], ['documents', count(totals.documents)],
      ['broken', count(totals.broken)], ['matches', count(totals.matches)],
      ['slow documents', count(totals.slow)], ['dead letters', count(totals.dead_letters), totals.dead_letters],
      ['dropped', count(totals.dropped), totals.dropped], ['swap of the set, p99', milliseconds(seconds.swap.p99)],
    ];
    fill(tiles, facts.map(([name, value, bad]) => h('div', {}, h('dt', {}, name), h('dd', { class: bad ? 'bad' : '' }, value))));
    const sizes = Object.entries(set.memory).sort((one, other) => other[1] - one[1]);
    const all = sizes.reduce((sum, [, size]) => sum + size, 0);
    fill(memory, sizes.length ? [h('p', { class: 'figure' }, h('b', {}, bytes(all)), set.subscriptions ? ` – ${bytes(all / set.subscriptions)} a subscription` : ''),
      h('ul', { class: 'bars' }, sizes.map(([name, size]) => bar(name, size, sizes[0][1])))] : h('p', { class: 'note' }, 'nothing yet'));
    const kinds = Object.entries(queues.deliveries);
    fill(waiting, kinds.length ? h('table', {}, h('thead', {}, h('tr', {}, h('th', {}, 'kind'), h('th', { class: 'n' }, 'waiting'), h('th', { class: 'n' }, 'the oldest since'))),
      h('tbody', {}, kinds.map(([kind, { waiting: number, oldest_seconds: oldest }]) => h('tr', {}, h('td', {}, kind), h('td', { class: 'n' }, count(number)), h('td', { class: 'n' }, oldest ? milliseconds(oldest) : '–'))))) : h('p', { class: 'note' }, 'none'));
  }

  async function lastVersions() {
    const { items } = await get('versions', { most: 5 });
    fill(versions, items.length ? h('ul', { class: 'list' }, items.map(({ version, at, actor, added, removed }) =>
      h('li', {}, h('span', {}, `${count(version)}: `, added ? `+${count(added)} ` : '', removed ? `−${count(removed)}` : ''), h('small', {}, `${when(at)}, ${actor}`)))) : h('p', { class: 'note' }, 'none'));
  }

  look();
  return () => { stopped = true; clearTimeout(timer); };
}

function bar(name, size, largest) {
  const filled = h('i', {});
  filled.style.width = `${100 * size / largest}%`;
  return h('li', {}, h('span', {}, name), h('span', { class: 'bar', 'aria-hidden': 'true' }, filled), h('b', {}, bytes(size)));
}

/** Subscribers that cannot be reached, and what was given up. */
class Failing {
  constructor(context) {
    this.context = context;
    this.subscribers = h('div', {});
    this.letters = h('div', {});
    this.all = h('button', { type: 'button', hidden: true, onclick: () => this.replayAll() }, 'Replay all');
    this.element = h('section', { class: 'card failing', 'aria-label': 'Deliveries that fail' },
      h('h2', {}, 'Deliveries that fail'), this.subscribers,
      h('div', { class: 'top' }, h('h2', {}, 'Dead letters'), h('span', { class: 'grow' }), this.all), this.letters);
    this.shown = [];
  }

  async load() {
    const [failing, dead] = await Promise.all([get('subscribers', { failing: 'true', most: 100 }), get('dead-letters', { most: 100, brief: 'true' })]);
    fill(this.subscribers, failing.items.length ? table(['subscriber', 'where', 'what happened', 'waiting', 'next try'], failing.items.map((item) => [
      [clamped(item.id), this.context.isAdmin ? h('small', {}, clamped(item.owner)) : ''], clamped(item.url || item.topic || item.kind),
      [item.state === 'ended' ? h('b', { class: 'bad' }, 'ended ') : '', clamped(item.reason), item.attempts ? ` (${many(item.attempts, 'attempt')})` : ''],
      count(item.waiting), item.retry_at ? h('span', { class: 'whole' }, when(item.retry_at)) : '–'])) : h('p', { class: 'note' }, 'All deliveries go out.'));
    this.shown = dead.items;
    this.all.hidden = dead.items.length < 2;
    fill(this.letters, dead.items.length ? table(['delivery', 'subscriber', 'document', 'why', 'given up', ''], dead.items.map((item) => [
      h('code', { class: 'whole' }, item.id), clamped(item.subscriber), clamped(item.delivery.document?.label || item.delivery.document?.id || ''), clamped(`${item.reason} (${many(item.attempts, 'attempt')})`), h('span', { class: 'whole' }, when(item.failed)),
      h('span', { class: 'actions' },
        h('button', { type: 'button', class: 'small', 'aria-label': `Replay ${item.id}`, onclick: () => this.replay(item) }, 'Replay'),
        h('button', { type: 'button', class: 'small danger', 'aria-label': `Forget ${item.id}`, onclick: () => this.forget(item) }, 'Forget'))])) : h('p', { class: 'note' }, 'None.'));
  }

  async replay(item, quietly = false) {
    try {
      await ask('POST', `dead-letters/${encodeURIComponent(item.id)}/replay`);
      if (!quietly) say(`${item.id} was received.`, 'good');
      return true;
    } catch (problem) {
      if (!quietly) say(`${item.id}: ${problem}`, 'bad');
      return false;
    } finally {
      if (!quietly) await this.load();
    }
  }

  async replayAll() {
    this.all.disabled = true;
    let received = 0;
    for (const item of this.shown) received += await this.replay(item, true);
    say(`${count(received)} of ${count(this.shown.length)} were received.`, received === this.shown.length ? 'good' : 'bad');
    this.all.disabled = false;
    await this.load();
  }

  async forget(item) {
    if (!await confirmed('Forget', `Forget the dead letter ${item.id} to ${item.subscriber}? It will not be delivered.`, 'Forget it')) return;
    await ask('DELETE', `dead-letters/${encodeURIComponent(item.id)}`);
    await this.load();
  }
}

function table(names, rows) {
  return h('div', { class: 'scroll', tabindex: '0', role: 'group', 'aria-label': names.slice(0, 2).join(', ') }, h('table', {},
    h('thead', {}, h('tr', {}, names.map((name) => (name ? h('th', { scope: 'col' }, name) : h('td', {}))))),
    h('tbody', {}, rows.map((cells) => h('tr', {}, cells.map((cell) => h('td', {}, cell)))))));
}

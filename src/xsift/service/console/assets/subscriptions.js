// Subscriptions: searched, sorted, filtered, a page at a time: the server keeps the list, the page a screen of it.

import { address, get } from './api.js';
import { bytes, clamped, count, dialog, field, fill, h, later, many, when } from './dom.js';
import { ask } from './api.js';
import { forOwner, subscriptionForm } from './subscription-form.js';

const PAGE = 50;
const SORTS = { id: 'by id', changed: 'changed last', matches: 'most matches', failures: 'most errors' };
let kept = { contains: '', owner: '', label: '', sort: 'id' };

export function mount(screen, context) {
  const search = h('input', { type: 'search', placeholder: 'id or expression', value: kept.contains, 'aria-label': 'Search', spellcheck: 'false', oninput: later(() => first(), 250) });
  const owner = h('select', { 'aria-label': 'Owner', onchange: () => first() }, h('option', { value: '' }, 'all owners'));
  const label = h('input', { placeholder: 'label: name=value', value: kept.label, 'aria-label': 'Label', spellcheck: 'false', autocapitalize: 'off', oninput: later(() => first(), 350) });
  const sort = h('select', { 'aria-label': 'Sort', onchange: () => first() },
    Object.entries(SORTS).map(([value, text]) => h('option', { value, selected: value === kept.sort }, text)));
  const total = h('p', { class: 'total', role: 'status' });
  const table = h('div', { class: 'card table' });
  const pages = h('div', { class: 'pages' });
  const exports = h('a', { class: 'button', download: 'subscriptions.ndjson' }, 'Export');
  let before = [null]; // where each page begins that was looked at
  let asking = null;

  fill(screen, h('h1', {}, 'Subscriptions'),
    h('div', { class: 'tools' }, search, context.isAdmin ? owner : null, label, sort, h('span', { class: 'grow' }),
      h('button', { type: 'button', class: 'main', onclick: () => subscriptionForm({}, context, { isNew: true, done: load }) }, 'New …'),
      h('button', { type: 'button', onclick: () => importDialog(context, first) }, 'Import …'), exports),
    total, table, pages);
  if (context.isAdmin) {
    get('owners').then(({ items }) => {
      owner.append(...items.map((item) => h('option', { value: item.owner, selected: item.owner === kept.owner }, `${item.owner} (${count(item.subscriptions)})`)));
      if (kept.owner) first();
    }, () => {});
  }
  load();
  const again = setInterval(() => { if (!document.hidden && !document.querySelector('dialog')) load(true); }, 10_000);
  return () => { clearInterval(again); if (asking) asking.abort(); };

  function filters() {
    const wanted = { contains: search.value.trim(), owner: owner.value, label: label.value.trim(), sort: sort.value };
    kept = wanted;
    return { ...wanted, label: wanted.label.indexOf('=') > 0 ? wanted.label : '' };
  }

  function first() {
    before = [null];
    load();
  }

  async function load(quietly = false) {
    if (asking) asking.abort();
    asking = new AbortController();
    const { signal } = asking, wanted = filters();
    exports.href = address('subscriptions', { ...wanted, sort: '', format: 'ndjson' });
    try {
      const page = await get('subscriptions', { ...wanted, most: PAGE, after: before[before.length - 1], count: 'true' }, { signal });
      if (!signal.aborted) show(page);
    } catch (problem) {
      if (problem.name !== 'AbortError' && !quietly) fill(total, h('span', { class: 'bad' }, String(problem)));
    }
  }

  function show({ items, next, total: all }) {
    const focused = document.activeElement?.dataset?.row;
    const begin = (before.length - 1) * PAGE;
    fill(total, all ? `${count(begin + 1)}–${count(begin + items.length)} of ${many(all, 'subscription')}` : 'No subscriptions.');
    fill(table, items.length ? h('table', {},
      h('thead', {}, h('tr', {}, [['Id', 'id'], ['Expression', 'xpath'], context.isAdmin ? ['Owner', 'owner'] : null, ['Told', 'told'], ['Labels', 'labels']].filter(Boolean).map(([text, name]) => h('th', { scope: 'col', class: `of-${name}` }, text)),
        h('th', { scope: 'col', class: 'n', title: 'documents that it matched in the last 15 minutes' }, 'Matches'), h('th', { scope: 'col', class: 'n' }, 'Errors'), h('th', { scope: 'col', class: 'of-changed' }, 'Changed'))),
      h('tbody', {}, items.map(row))) : empty());
    fill(pages, before.length > 1 ? h('button', { type: 'button', onclick: () => { before.pop(); load(); } }, '← Previous') : null,
      next ? h('button', { type: 'button', onclick: () => { before.push(next); load(); } }, 'Next →') : null);
    if (focused) table.querySelector(`[data-row="${CSS.escape(focused)}"]`)?.focus();
  }

  function row(item) {
    const open = () => openOne(item);
    const wrong = item.error || item.failures;
    return h('tr', {},
      h('td', { class: 'id' }, h('button', { type: 'button', class: 'quiet link', 'data-row': `${item.owner}/${item.id}`, title: item.id.length > 60 ? item.id : null, onclick: open }, item.id)),
      h('td', { class: 'xpath' }, h('code', {}, item.xpath)),
      context.isAdmin ? h('td', { 'data-name': 'owner' }, clamped(item.owner)) : null,
      h('td', { 'data-name': 'told' }, clamped(item.subscriber), h('small', {}, ` ${item.deliver}`)),
      h('td', { class: 'labels' }, Object.entries(item.labels).map(([name, value]) => h('button', { type: 'button', class: 'chip',
        'aria-label': `Only label ${name}=${value}`, onclick: () => { label.value = `${name}=${value}`; first(); } }, clamped(`${name}=${value}`)))),
      h('td', { class: 'n', 'data-name': 'matches' }, item.matches ? count(item.matches) : h('span', { class: 'faint' }, '0')),
      h('td', { class: wrong ? 'n bad' : 'n', 'data-name': 'errors' }, item.error ? 'unusable' : item.failures ? count(item.failures) : h('span', { class: 'faint' }, '0')),
      h('td', { 'data-name': 'changed', title: `by ${item.changed_by}, version ${item.version}` }, when(item.changed)));
  }

  async function openOne(item) {
    const full = await get(`subscriptions/${encodeURIComponent(item.id)}`, forOwner(item.owner, context));
    subscriptionForm(full, context, { done: load });
  }

  function empty() {
    const filtered = search.value || owner.value || label.value;
    return h('div', { class: 'empty' }, h('p', {}, filtered ? 'Nothing is like that.' : 'Nobody has subscribed to anything yet.'),
      filtered ? null : h('p', { class: 'note' }, 'Write one here, import a file, or begin in ', h('a', { href: '#try' }, 'Try'), '.'));
  }
}

/** Many at once: lines of JSON, from a file or pasted; then what was refused, and why. */
function importDialog(context, done) {
  const file = h('input', { type: 'file', accept: '.ndjson,.jsonl,.json,.txt' });
  const text = h('textarea', { class: 'code', rows: '7', spellcheck: 'false', placeholder: '{"id": "spark", "xpath": "//hl1[contains(., \'Spark\')]", "labels": {"team": "news"}}' });
  const report = h('div', { role: 'status' });
  const button = h('button', { class: 'main' }, 'Import');
  const form = h('form', { onsubmit: submit },
    h('p', { class: 'note' }, 'A subscription a line, as JSON: id, xpath, and what else it has (as Export gives it). What can be used goes in, the rest is reported.'),
    field('A file', file), field('Or lines', text), h('div', { class: 'actions' }, button), report);
  dialog('Import subscriptions', form);

  async function submit(event) {
    event.preventDefault();
    const body = file.files[0] || text.value;
    if (body instanceof File ? !body.size : !body.trim()) { fill(report, h('p', { class: 'bad' }, 'There is nothing to import yet.')); return; }
    button.disabled = true;
    fill(report, h('p', {}, `Importing ${body instanceof File ? `${body.name}, ${bytes(body.size)}` : 'these lines'} …`), h('progress', { 'aria-label': 'Importing' }));
    try {
      show(await ask('POST', 'subscriptions', { body, type: 'application/x-ndjson' }));
      done();
    } catch (problem) {
      fill(report, h('p', { class: 'bad' }, String(problem)));
    }
    button.disabled = false;
  }

  function show({ added, replaced, unchanged, refused, errors }) {
    const rows = errors.slice(0, 200).map((error) => h('tr', {},
      h('td', { class: 'n' }, count(error.line)), h('td', {}, clamped(error.id || '')), h('td', {}, error.detail, error.column ? `, column ${error.column}` : ''), h('td', {}, error.hint || '')));
    fill(report,
      h('p', { class: 'figure' }, h('b', {}, count(added)), ' added, ', h('b', {}, count(replaced)), ' replaced, ', h('b', {}, count(unchanged)), ' unchanged, ',
        h('b', { class: refused ? 'bad' : '' }, count(refused)), ' refused'),
      rows.length ? h('div', { class: 'scroll', tabindex: '0', role: 'group', 'aria-label': 'What was refused' }, h('table', {},
        h('thead', {}, h('tr', {}, h('th', { class: 'n' }, 'line'), ['id', 'what is wrong', 'what to do'].map((name) => h('th', {}, name)))), h('tbody', {}, rows))) : null,
      refused > rows.length ? h('p', { class: 'note' }, `The first ${rows.length} are listed.`) : null);
  }
}

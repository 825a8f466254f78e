// A subscription: written, changed, tried, removed; and every state that it has had.

import { ask, get, post } from './api.js';
import { confirmed, dialog, field, fill, h, later, say, when } from './dom.js';
import { ExpressionEditor } from './expression.js';

const PLAIN = ['ids', 'document', 'fragments'];
const DELIVER = { ids: 'that it matched', document: 'the whole document', fragments: 'what it selects, as fragments' };

/** Opens a subscription in a dialog. `done` is called when something was changed. */
export function subscriptionForm(subscription, context, { isNew = false, done = () => {} } = {}) {
  const editor = new ExpressionEditor({ onChange: () => check() });
  const id = h('input', { class: 'code', required: true, maxlength: '200', value: subscription.id || '', readonly: !isNew, spellcheck: 'false', autocapitalize: 'off' });
  const subscriber = h('input', { class: 'code', maxlength: '200', value: subscription.subscriber || '', placeholder: 'the owner', spellcheck: 'false', autocapitalize: 'off', list: 'subscribers' });
  const deliver = h('select', {}, PLAIN.map((name) => h('option', { value: name, selected: name === (subscription.deliver || 'ids') }, DELIVER[name])));
  const labels = h('textarea', { class: 'code', rows: '2', spellcheck: 'false', value: lines(subscription.labels), placeholder: 'team=news' });
  const metadata = h('textarea', { class: 'code', rows: '2', spellcheck: 'false', value: json(subscription.metadata), placeholder: '{"priority": 1}' });
  const owner = h('input', { class: 'code', maxlength: '200', value: subscription.owner || context.session.owner, readonly: !isNew, spellcheck: 'false' });
  const told = h('p', { class: 'bad', role: 'alert' });
  const says = h('p', { class: 'note', role: 'status' });
  editor.value = subscription;

  const check = later(async () => {
    const wanted = editor.value;
    if (!wanted.xpath) { editor.wrong(null); fill(says); return; }
    const found = await post('subscriptions/validate', wanted).catch(() => null);
    if (!found || JSON.stringify(wanted) !== JSON.stringify(editor.value)) return; // of an earlier expression
    editor.wrong(found.valid ? null : found.error);
    fill(says, !found.valid ? '' : found.never ? 'Valid, but no document can match it.' : found.exact ? 'Valid; the index decides it alone.'
      : found.always ? 'Valid; it is evaluated on every document, which costs.' : 'Valid; in part indexed, the rest is evaluated.');
  }, 200);

  async function submit(event) {
    event.preventDefault();
    try {
      const wanted = {
        ...editor.value, subscriber: subscriber.value.trim() || null, deliver: deliver.value,
        labels: parsedLines(labels.value), metadata: parsedJson(metadata.value),
      };
      if (/[/]/.test(id.value)) throw new Error('An id has no / in it.');
      if (!wanted.xpath) { editor.input.focus(); throw new Error('There is no expression yet.'); }
      await ask('PUT', `subscriptions/${encodeURIComponent(id.value)}`, { json: wanted, query: forOwner(owner.value, context) });
      say(isNew ? `Subscribed: ${id.value}. The next document is matched with it.` : `Changed: ${id.value}.`, 'good');
      box.close();
      done();
    } catch (problem) {
      if (problem.column) editor.wrong({ detail: problem.message, column: problem.column, hint: problem.hint });
      fill(told, String(problem.status === undefined ? problem.message : problem));
    }
  }

  async function remove() {
    if (!await confirmed('Remove', `Remove the subscription ${subscription.id}? Its history stays.`, 'Remove it')) return;
    await ask('DELETE', `subscriptions/${encodeURIComponent(subscription.id)}`, { query: forOwner(subscription.owner, context) });
    say(`Removed: ${subscription.id}.`, 'good');
    box.close();
    done();
  }

  const known = h('datalist', { id: 'subscribers' });
  get('subscribers', { most: 200, ...forOwner(owner.value, context) })
    .then(({ items }) => fill(known, items.map((item) => h('option', { value: item.id }))), () => {});
  const past = h('div', { class: 'past' });
  const form = h('form', { class: 'subscription', onsubmit: submit },
    problems(subscription),
    h('div', { class: 'pair' }, field('Id', id), context.isAdmin ? field('Owner', owner) : null),
    editor.element, says,
    h('div', { class: 'pair' }, field('Subscriber: who is told', subscriber), field('What is delivered', deliver)), known,
    h('div', { class: 'pair' }, field('Labels', labels, 'name=value, one a line'), field('Metadata', metadata, 'JSON; comes back with every match')),
    told,
    h('div', { class: 'actions' },
      h('button', { class: 'main' }, isNew ? 'Subscribe' : 'Save'),
      isNew ? null : h('button', { type: 'button', onclick: () => { box.close(); context.tryThis(editor.value); } }, 'Try'),
      isNew ? null : h('button', { type: 'button', onclick: () => history() }, 'History'),
      isNew ? null : h('button', { type: 'button', class: 'danger', onclick: remove }, 'Remove')),
    past);
  const box = dialog(isNew ? 'New subscription' : subscription.id, form);
  editor.grow();
  (isNew ? id : editor.input).focus();
  check();

  async function history() {
    const { items } = await get(`subscriptions/${encodeURIComponent(subscription.id)}/history`, forOwner(subscription.owner, context));
    const bringBack = (state) => {
      editor.value = state;
      subscriber.value = state.subscriber;
      deliver.value = state.deliver;
      labels.value = lines(state.labels);
      metadata.value = json(state.metadata);
      check();
      editor.input.focus();
      say('It is in the form now; Save brings it back.');
    };
    fill(past, h('h3', {}, 'History'), h('ol', { class: 'history' }, items.map((state, place) => h('li', {},
      h('div', {}, h('b', {}, place === 0 && !state.removed ? 'now' : `until ${when(state.removed)}`),
        h('small', {}, ` since ${when(state.changed)}, by ${state.changed_by}, version ${state.version}${state.removed_by ? `; ended by ${state.removed_by}` : ''}`)),
      h('code', {}, state.xpath),
      place === 0 && !state.removed ? null : h('button', { type: 'button', class: 'small', onclick: () => bringBack(state) }, 'Put into the form')))));
    past.scrollIntoView({ block: 'nearest' });
  }
}

/** What is wrong with a subscription that is stored. */
function problems({ error, failures, last_failure: last }) {
  const found = [];
  if (error) found.push(`It cannot be used and is not matched: ${error.detail}${error.hint ? ` (${error.hint})` : ''}.`);
  if (failures) found.push(`It could not be decided on ${failures} of the latest documents${last ? `, last at ${when(last.at)} on ${last.document}: ${last.message}` : ''}.`);
  return found.length ? h('div', { class: 'warning' }, found.map((text) => h('p', {}, text))) : null;
}

/** The query for somebody else's: only an admin may name another owner. */
export function forOwner(owner, context) {
  return owner && owner !== context.session.owner ? { owner } : {};
}

const lines = (labels) => Object.entries(labels || {}).map(([name, value]) => `${name}=${value}`).join('\n');
const json = (metadata) => (metadata && Object.keys(metadata).length ? JSON.stringify(metadata) : '');

function parsedLines(text) {
  const found = {};
  for (const line of text.split('\n').map((each) => each.trim()).filter(Boolean)) {
    const place = line.indexOf('=');
    if (place < 1) throw new Error(`A label is written name=value, not ${line}.`);
    found[line.slice(0, place).trim()] = line.slice(place + 1).trim();
  }
  return found;
}

function parsedJson(text) {
  if (!text.trim()) return {};
  let value;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new Error(`The metadata is not JSON: ${error.message}.`);
  }
  if (value === null || typeof value !== 'object' || Array.isArray(value)) throw new Error('The metadata is a JSON object: {"name": …}.');
  return value;
}

// Try: an expression beside a document, and what the one catches in the other, as one types.

import { decoded, get, keptDocument, post } from './api.js';
import { Caught } from './caught.js';
import { DocumentView } from './document-view.js';
import { bytes, count, fill, h, later, many, say, when } from './dom.js';
import { Explanation } from './explanation.js';
import { ExpressionEditor } from './expression.js';
import { subscriptionForm } from './subscription-form.js';

const EDITABLE = 300_000; // characters: a larger one is looked at, and replaced as a whole
const LARGEST = 30_000_000;
const SAMPLES = [
  { file: 'sample-news.xml', name: 'News', xpath: "//hl1[contains(., 'Spark')]", namespaces: {} },
  { file: 'sample-invoice.xml', name: 'Invoice (namespaces)', xpath: "//cac:InvoiceLine[cbc:LineExtensionAmount > 100]/cac:Item/cbc:Name",
    namespaces: { cac: 'urn:oasis:names:specification:ubl:schema:xsd:CommonAggregateComponents-2', cbc: 'urn:oasis:names:specification:ubl:schema:xsd:CommonBasicComponents-2' } },
  { file: 'sample-feed.xml', name: 'Feed (default namespace)', xpath: '//atom:entry/atom:title', namespaces: { atom: 'http://www.w3.org/2005/Atom' } },
];
let kept = null; // what was on this screen when it was left

export function mount(screen, context) {
  const editor = new ExpressionEditor({ onChange: () => changed() });
  const view = new DocumentView({ label: 'Document', onPoint: (element, attribute) => point(element, attribute) });
  const caught = new Caught({ onLook: (id, label) => openKept(id, label), isAdmin: context.isAdmin });
  const explanation = new Explanation(editor);
  const verdict = h('p', { class: 'verdict', role: 'status' });
  const proposals = h('section', { class: 'card proposals', hidden: true, 'aria-label': 'Proposals' });
  const title = h('span', { class: 'name' });
  const broken = h('p', { class: 'bad', role: 'alert' });
  const walk = h('span', { class: 'walk' });
  const text = h('textarea', { class: 'code edit', spellcheck: 'false', 'aria-label': 'Document as text', hidden: true,
    oninput: later(() => setDocument(text.value, title.textContent, true), 150) });
  const edit = h('button', { type: 'button', onclick: () => toggleEdit() }, 'Edit');
  const file = h('input', { type: 'file', class: 'unseen', id: 'file', tabindex: '-1', 'aria-hidden': 'true', onchange: () => file.files[0] && openFile(file.files[0]) });
  const samples = chooser('Sample', SAMPLES.map((sample) => [sample.file, sample.name]), (name) => openSample(name));
  const recent = chooser('Recent', [], (id, label) => openKept(id, label));
  const state = { xml: '', label: '', tried: null, at: -1 };
  let asking = null;
  let opened = 0; // documents so far: one that arrives when another was chosen meanwhile is not shown
  let pointed = 0; // nor what was proposed for another element

  const pane = h('section', { class: 'card document', 'aria-label': 'Document' },
    h('div', { class: 'tools' }, title, walk, h('span', { class: 'grow' }), samples, recent,
      h('button', { type: 'button', onclick: () => file.click() }, 'Open file'), file, edit),
    broken, view.element, text);
  fill(screen,
    h('h1', { class: 'unseen' }, 'Try'),
    h('section', { class: 'card write', 'aria-label': 'Expression' }, editor.element, verdict,
      context.may('subscribe') ? h('div', { class: 'actions' },
        h('button', { type: 'button', class: 'main', onclick: () => subscribe() }, 'Subscribe with this …')) : null),
    pane,
    h('div', { class: 'told' }, proposals, explanation.element, caught.element));

  // What is asked

  const tryLater = later(() => tryIt(), () => Math.min(800, 150 + state.xml.length / 20_000));
  function changed() {
    tryLater();
    caught.stale();
  }

  async function tryIt() {
    if (asking) asking.abort();
    asking = new AbortController();
    const { signal } = asking, wanted = editor.value;
    if (!wanted.xpath) { nothing(); return; }
    try {
      const tried = await post('try', { ...wanted, xml: state.xml }, { signal });
      if (signal.aborted) return;
      told(tried);
      caught.about(tried.validation.valid ? wanted : null);
    } catch (problem) {
      if (problem.name !== 'AbortError') fill(verdict, h('b', { class: 'bad' }, String(problem)));
    }
  }

  function nothing() {
    editor.wrong(null);
    view.mark([]);
    fill(verdict, 'Write an expression, or click on something in the document.');
    fill(walk);
    explanation.clear();
    caught.about(null);
    const { signal } = asking;
    if (state.xml) post('try', { xpath: '/*', xml: state.xml }, { signal }).then(({ document_error: error }) => signal.aborted || showBroken(error), () => {});
  }

  function told(tried) {
    state.tried = tried;
    const { validation, document_error: documentError, failure } = tried;
    editor.wrong(validation.valid ? null : validation.error);
    showBroken(documentError);
    view.mark(tried.nodes || []);
    state.at = -1;
    if (!validation.valid) fill(verdict, h('b', { class: 'bad' }, 'Not valid yet'));
    else if (documentError) fill(verdict, h('b', { class: 'bad' }, 'The document is broken'));
    else if (failure) fill(verdict, h('b', { class: 'bad' }, failure.detail), ` ${failure.hint || ''}`);
    else if (!state.xml) fill(verdict, h('b', { class: 'good' }, 'Valid'), ' – there is no document yet');
    else if (!tried.matched) fill(verdict, h('b', { class: 'none' }, 'Does not match this document'));
    else if (tried.selects) fill(verdict, h('b', { class: 'good' }, `Selects ${many(tried.selects, 'node')}`));
    else fill(verdict, h('b', { class: 'good' }, 'Matches'), ' – a condition, which selects no node');
    walkthrough(tried);
    explanation.show(tried);
  }

  function walkthrough({ nodes = [], selects = 0 }) {
    if (!nodes.length) { fill(walk); return; }
    const place = h('span', { class: 'at', role: 'status' }, nodes.length < selects ? `first ${count(nodes.length)} marked` : '');
    const go = (step) => {
      state.at = (state.at + step + nodes.length) % nodes.length;
      if (state.at < 0) state.at = 0;
      place.textContent = `${count(state.at + 1)} of ${count(selects)}`;
      view.reveal(view.hits[state.at]);
    };
    fill(walk, h('button', { type: 'button', class: 'quiet', 'aria-label': 'Previous node', onclick: () => go(-1) }, '↑'),
      h('button', { type: 'button', class: 'quiet', 'aria-label': 'Next node', onclick: () => go(1) }, '↓'), place);
  }

  function showBroken(error) {
    fill(broken, error ? `Line ${error.line}, column ${error.column}: ${error.detail}${error.hint ? ` (${error.hint})` : ''}` : '');
    if (error) view.wrong(error.place, error.detail);
    else if (view.note) view.wrong(0);
  }

  // The document

  async function setDocument(xml, label, fromEdit = false) {
    if (xml.length > LARGEST) { say(`This has more than ${bytes(LARGEST)}.`, 'bad'); return; }
    opened++;
    state.xml = xml.toWellFormed ? xml.toWellFormed() : xml;
    state.label = label;
    closeProposals();
    fill(title, label || 'document', h('small', {}, bytes(new Blob([state.xml]).size)));
    edit.disabled = state.xml.length > EDITABLE;
    edit.title = edit.disabled ? 'Too large to edit here: open or paste another one' : '';
    if (!fromEdit) {
      text.value = edit.disabled ? '' : state.xml;
      if (edit.disabled && !text.hidden) toggleEdit();
    }
    const read = view.show(state.xml);
    tryLater.cancel();
    await read;
    await tryIt();
  }

  function toggleEdit() {
    text.hidden = !text.hidden;
    view.element.hidden = !text.hidden;
    edit.textContent = text.hidden ? 'Edit' : 'Look';
    if (text.hidden) view.measure(true);
    else text.focus();
  }

  async function openFile(chosen) {
    if (chosen.size > LARGEST) { say(`${chosen.name} has more than ${bytes(LARGEST)}.`, 'bad'); return; }
    const number = ++opened;
    const xml = decoded(await chosen.arrayBuffer());
    file.value = '';
    if (number === opened) await setDocument(xml, chosen.name);
  }

  async function openSample(name) {
    const sample = SAMPLES.find((each) => each.file === name);
    const number = ++opened;
    const xml = await (await fetch(`console/${sample.file}`)).text();
    if (number !== opened) return;
    if (!editor.value.xpath || SAMPLES.some((each) => each.xpath === editor.value.xpath)) {
      editor.value = sample;
    }
    await setDocument(xml, sample.name);
  }

  async function openKept(id, label) {
    const number = ++opened;
    try {
      const { text: xml } = await keptDocument(id);
      if (number === opened) await setDocument(xml, label || id);
    } catch (problem) {
      if (number === opened) say(String(problem), 'bad');
    }
  }

  async function listRecent() {
    const { items } = await get('documents', { most: 50 });
    recent.offer(items.map(({ id, label, received, size }) => [id, `${when(received)}  ${label || id} (${bytes(size)})`, label]));
  }

  const takes = {
    paste: (event) => {
      if (event.target.closest?.('input, textarea, dialog')) return;
      const pasted = event.clipboardData.getData('text/plain');
      if (pasted) { event.preventDefault(); setDocument(pasted, 'pasted'); }
    },
    dragover: (event) => { event.preventDefault(); pane.classList.add('drop'); },
    dragleave: () => pane.classList.remove('drop'),
    drop: (event) => {
      event.preventDefault();
      pane.classList.remove('drop');
      const [dropped] = event.dataTransfer.files;
      if (dropped) openFile(dropped);
      else if (event.dataTransfer.getData('text/plain')) setDocument(event.dataTransfer.getData('text/plain'), 'dropped');
    },
  };
  document.addEventListener('paste', takes.paste);
  for (const name of ['dragover', 'dragleave', 'drop']) pane.addEventListener(name, takes[name]);

  // Proposals

  async function point(element, attribute) {
    const name = view.scan.name(element), number = ++pointed, shown = opened;
    let answer;
    try {
      answer = await post('propose', { xml: state.xml, element, attribute, namespaces: editor.value.namespaces });
    } catch (problem) {
      if (number === pointed) say(String(problem), 'bad');
      return;
    }
    if (number !== pointed || shown !== opened) return;
    const choose = (xpath) => {
      const used = Object.entries(answer.namespaces).filter(([prefix]) => xpath.includes(`${prefix}:`) || editor.bound[prefix]);
      editor.value = { xpath, namespaces: Object.fromEntries(used) };
      closeProposals();
      changed();
      editor.input.focus();
    };
    const items = answer.items.map(({ xpath, says, selects }) => h('li', {},
      h('button', { type: 'button', class: 'choice', onclick: () => choose(xpath) },
        h('code', {}, xpath), h('span', {}, says), h('b', {}, selects === null ? 'many' : count(selects)))));
    fill(proposals,
      h('div', { class: 'top' }, h('h2', {}, 'Expressions for ', h('code', {}, attribute ? `@${attribute}` : `<${name}>`)),
        h('button', { type: 'button', class: 'quiet close', 'aria-label': 'Close the proposals', onclick: () => { closeProposals(); view.box.focus(); } }, '✕')),
      h('p', { class: 'note' }, 'From general to particular, with how many nodes each selects here.'), h('ol', {}, items));
    proposals.hidden = false;
    proposals.querySelector('.choice')?.focus({ preventScroll: true });
    proposals.scrollIntoView({ block: 'nearest' });
  }

  function closeProposals() {
    proposals.hidden = true;
    proposals.replaceChildren();
  }
  proposals.addEventListener('keydown', (event) => {
    if (event.key === 'Escape') { closeProposals(); view.box.focus(); }
  });

  function subscribe() {
    if (!editor.value.xpath) { editor.input.focus(); return; }
    subscriptionForm({ ...editor.value }, context, { isNew: true });
  }

  // Beginning and end

  const begin = context.try || kept;
  context.try = null;
  if (begin) {
    editor.value = begin;
    if (begin.document) openKept(begin.document, begin.label);
    else if (begin.xml !== undefined) setDocument(begin.xml, begin.label);
    else if (kept?.xml) setDocument(kept.xml, kept.label);
    else openSample(SAMPLES[0].file);
  } else openSample(SAMPLES[0].file);
  listRecent().catch(() => {});

  return () => {
    opened++;
    if (editor.value.xpath || state.xml) kept = { ...editor.value, xml: state.xml, label: state.label };
    document.removeEventListener('paste', takes.paste);
    if (asking) asking.abort();
    tryLater.cancel();
    caught.close();
    view.close();
  };
}

/** A choice that is at once carried out. */
function chooser(label, options, choose) {
  const select = h('select', { 'aria-label': `${label} document`, onchange: () => {
    const option = select.selectedOptions[0];
    const chosen = select.value;
    select.value = '';
    if (chosen) choose(chosen, option.dataset.label);
  } });
  select.offer = (items) => fill(select, h('option', { value: '' }, `${label} …`),
    items.map(([value, text, name]) => h('option', { value, 'data-label': name || '' }, text)));
  select.offer(options);
  return select;
}

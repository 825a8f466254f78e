// The page: who is there, which screen is shown.

import { ask, get, Problem } from './api.js';
import { fill, h, say } from './dom.js';
import * as engineRoom from './engine-room.js';
import * as live from './live.js';
import * as subscriptions from './subscriptions.js';
import * as trying from './try.js';

const screens = {
  try: { title: 'Try', module: trying },
  subscriptions: { title: 'Subscriptions', module: subscriptions, roles: ['subscribe', 'admin'] },
  live: { title: 'Live', module: live },
  engine: { title: 'Engine room', module: engineRoom, roles: ['subscribe', 'admin'] },
};
const screen = document.getElementById('screen');
const context = { session: null, isAdmin: false, try: null };
let leave = () => {};
let shown = null;
let owner = null; // who is signed in, or was the last

/** Goes to Try with an expression, a document, or both. */
context.tryThis = (what) => {
  context.try = what;
  if (location.hash === '#try') show();
  else location.hash = 'try';
};

async function start() {
  const before = owner;
  try {
    context.session = await get('session');
  } catch (problem) {
    if (problem.status !== 401) cannot(problem);
    return;
  }
  const { roles, needs_key: needsKey } = context.session;
  owner = context.session.owner;
  if (before !== null && before !== owner) { location.reload(); return; } // what the one before wrote is not theirs
  context.isAdmin = roles.includes('admin');
  context.may = (role) => context.isAdmin || roles.includes(role);
  fill(document.getElementById('who'),
    h('span', { class: 'owner', title: `roles: ${roles.join(', ')}` }, owner, context.isAdmin ? h('i', {}, 'admin') : null),
    needsKey ? h('button', { type: 'button', class: 'quiet', onclick: signOut }, 'Sign out') : null);
  show(false);
}

function allowed(name) {
  const roles = screens[name].roles;
  return !roles || roles.some((role) => context.session.roles.includes(role));
}

function show(moveFocus = true) {
  if (!context.session) return;
  const wanted = location.hash.slice(1);
  const name = screens[wanted] && allowed(wanted) ? wanted : 'try';
  leave();
  shown = name;
  const links = Object.keys(screens).filter(allowed).map((key) =>
    h('a', { href: `#${key}`, 'aria-current': key === name ? 'page' : undefined }, screens[key].title));
  fill(document.getElementById('screens'), links);
  document.title = `${screens[name].title} · xsift`;
  screen.className = name;
  screen.replaceChildren();
  leave = screens[name].module.mount(screen, context) || (() => {});
  if (moveFocus) screen.focus({ preventScroll: true });
  window.scrollTo(0, 0);
}

function cannot(problem) {
  fill(screen, h('section', { class: 'card gate' }, h('h1', {}, 'The server does not answer'),
    h('p', {}, String(problem)), h('button', { type: 'button', onclick: start }, 'Try again')));
}

// Signing in: the key is sent once, and kept in a cookie that no script can read.

function signIn(problem) {
  leave();
  leave = () => {};
  context.session = null;
  fill(document.getElementById('screens'));
  fill(document.getElementById('who'));
  document.title = 'Sign in · xsift';
  screen.className = 'signin';
  const key = h('input', { type: 'password', id: 'key', required: true, autocomplete: 'current-password', spellcheck: 'false',
    'aria-describedby': 'key-problem' });
  const told = h('p', { id: 'key-problem', class: 'bad', role: 'alert' }, shown && problem ? 'You were signed out. Sign in again.' : '');
  const form = h('form', { class: 'card gate', onsubmit: submit },
    h('h1', {}, 'Sign in'),
    h('p', {}, 'With an API key of this server. Each owner sees what is their own.'),
    h('label', { class: 'field' }, h('span', {}, 'API key'), key), told,
    h('div', { class: 'actions' }, h('button', { class: 'main' }, 'Sign in')),
    h('p', { class: 'note' }, 'An operator makes one with ', h('code', {}, 'xsift serve keys add OWNER --role subscribe'), '.'));

  async function submit(event) {
    event.preventDefault();
    try {
      if (!/^[\x21-\x7e]+$/.test(key.value.trim())) throw new Problem(401, { detail: 'this is not an API key' });
      await ask('POST', 'session', { key: key.value.trim() });
      shown = null;
      await start();
      screen.focus({ preventScroll: true });
    } catch (error) {
      fill(told, error.status === 401 ? `${error.message}.` : String(error));
      key.select();
      key.focus();
    }
  }
  fill(screen, form);
  key.focus();
}

async function signOut() {
  await ask('DELETE', 'session').catch(() => {});
  shown = null;
  signIn(null);
}

window.addEventListener('hashchange', () => show());
window.addEventListener('xsift-signed-out', (event) => {
  if (screen.className !== 'signin') signIn(event.detail);
});
window.addEventListener('unhandledrejection', (event) => {
  if (event.reason instanceof Problem && event.reason.status !== 401) say(String(event.reason), 'bad');
});
start();

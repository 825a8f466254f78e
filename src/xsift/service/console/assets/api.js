// Talks to the server: the same API that everybody uses, at the address that the page came from.

/** What the server said was wrong: status, code, message, hint, and where. */
export class Problem extends Error {
  constructor(status, told) {
    super(told.detail || `the server answered ${status}`);
    Object.assign(this, { status, code: told.code || '', hint: told.hint || '', line: told.line, column: told.column });
  }

  toString() {
    return this.hint ? `${this.message}: ${this.hint}` : this.message;
  }
}

/** A path with a query; null and '' are left out. Paths are relative, so that a server may stand behind a prefix. */
export function address(path, query = {}) {
  const known = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== '');
  const text = new URLSearchParams(known).toString();
  return text ? `${path}?${text}` : path;
}

/** Asks the server. `json` or `body` is sent; the answer is an object, or text, or null. Throws Problem. */
export async function ask(method, path, { query, json, body, type, key, signal } = {}) {
  const headers = {};
  if (json !== undefined) headers['content-type'] = 'application/json';
  if (type) headers['content-type'] = type;
  if (key) headers.authorization = `Bearer ${key}`;
  let answer;
  try {
    answer = await fetch(address(path, query), {
      method, headers, signal, body: json === undefined ? body : JSON.stringify(json), credentials: 'same-origin',
    });
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new Problem(0, { code: 'no-answer', detail: 'the server does not answer', hint: 'is it running?' });
  }
  const kind = answer.headers.get('content-type') || '';
  if (answer.ok) return answer.status === 204 ? null : kind.includes('json') ? answer.json() : answer.text();
  const told = kind.includes('json') ? await answer.json().catch(() => ({})) : {};
  const problem = new Problem(answer.status, told);
  if (answer.status === 401 && !key) window.dispatchEvent(new CustomEvent('xsift-signed-out', { detail: problem }));
  throw problem;
}

export const get = (path, query, options) => ask('GET', path, { query, ...options });
export const post = (path, json, options) => ask('POST', path, { json, ...options });

/** A document that the server keeps, as text, in whatever encoding it is. */
export async function keptDocument(id) {
  const answer = await fetch(`documents/${encodeURIComponent(id)}`, { credentials: 'same-origin' });
  if (!answer.ok) throw new Problem(answer.status, await answer.json().catch(() => ({})));
  const charset = /charset=([^;]+)/.exec(answer.headers.get('content-type') || '');
  return { text: decoded(await answer.arrayBuffer(), charset && charset[1]), size: Number(answer.headers.get('x-xsift-size')) };
}

/** Bytes of an XML document as text: by its byte order mark, by what is said of it, by what it says itself. */
export function decoded(buffer, charset) {
  const head = new Uint8Array(buffer, 0, Math.min(200, buffer.byteLength));
  let name = charset || 'utf-8';
  if (head[0] === 0xff && head[1] === 0xfe) name = 'utf-16le';
  else if (head[0] === 0xfe && head[1] === 0xff) name = 'utf-16be';
  else if (!charset) {
    const declared = /^<\?xml[^>]*encoding\s*=\s*["']([A-Za-z0-9._-]+)["']/.exec(String.fromCharCode(...head));
    if (declared) name = declared[1];
  }
  try {
    return new TextDecoder(name).decode(buffer);
  } catch {
    return new TextDecoder().decode(buffer);
  }
}

const AGAIN_MILLISECONDS = 3000;

/**
 * A stream of events that rests while nobody looks at the page: browsers allow few connections to one server.
 * `address()` is asked anew each time; `handlers` by the name of the event get the data and the event's id.
 * A browser gives a stream up when the answer is an error, as a server's that is about to start: we do not.
 */
export function listen(makeAddress, handlers, onState = () => {}) {
  let source = null, timer = null;
  const close = () => {
    clearTimeout(timer);
    if (source) source.close();
    source = null;
  };
  const open = () => {
    close();
    source = new EventSource(makeAddress());
    source.onopen = () => onState('open');
    source.onerror = () => {
      const closed = source.readyState === EventSource.CLOSED;
      if (closed) timer = setTimeout(open, AGAIN_MILLISECONDS);
      onState(closed ? 'closed' : 'again');
    };
    for (const [name, take] of Object.entries(handlers)) {
      source.addEventListener(name, (event) => take(JSON.parse(event.data), event.lastEventId));
    }
  };
  const turn = () => {
    if (document.hidden) close();
    else if (!source) open();
  };
  document.addEventListener('visibilitychange', turn);
  open();
  return () => {
    document.removeEventListener('visibilitychange', turn);
    close();
  };
}

/**
 * Lists in pages, as an API server gives them: never more than `limit` objects, and with a token (`metadata.continue`) the
 * next ones of the same list, as it was at its first page. The server forgets what it was after some minutes, and
 * then answers 410 with a token for the rest as it is by now.
 */
import { Refusal, type Thing } from './store.ts';

interface Rest {
  readonly path: string;
  readonly items: readonly Thing[];
  readonly version: string;
}

export class ListPages {
  /** By token; undefined for an expired one. */
  readonly #rests = new Map<string, Rest | undefined>();
  readonly #version: () => string;
  #tokens = 0;
  /** Called with each token that is given, so that a test can let it expire. */
  onToken: (token: string) => void = () => {};

  constructor(version: () => string) {
    this.#version = version;
  }

  /** Lists of these paths give a token with what they have, and it expires: nobody learns whether there is more. */
  endless: RegExp | undefined;

  expire(token: string): void {
    this.#rests.set(token, undefined);
  }

  /** @throws Refusal the token is expired, of no list, or of another one */
  page(url: URL, all: () => readonly Thing[]): { items: readonly Thing[]; metadata: object } {
    const { searchParams: query, pathname } = url;
    const limit = Number(query.get('limit') ?? 0);
    const token = query.get('continue') ?? '';
    if (token !== '' && (query.get('resourceVersion') ?? '') !== '') {
      throw new Refusal(400, 'BadRequest', 'specifying resource version is not allowed when using continue');
    }
    const path = `${pathname} ${query.get('labelSelector') ?? ''} ${query.get('fieldSelector') ?? ''}`;
    const { items, version } = token === '' ? this.#first(all()) : this.#rest(token, path);
    if (this.endless?.test(pathname)) {
      const endless = this.#token({ path, items: [], version });
      this.expire(endless);
      return { items, metadata: { resourceVersion: version, continue: endless } };
    }
    if (limit === 0 || items.length <= limit) return { items, metadata: { resourceVersion: version } };
    const isSelected = query.has('labelSelector') || query.has('fieldSelector');
    const metadata = {
      resourceVersion: version,
      continue: this.#token({ path, items: items.slice(limit), version }),
      // A server does not count what a selector would choose.
      ...(!isSelected && { remainingItemCount: items.length - limit }),
    };
    return { items: items.slice(0, limit), metadata };
  }

  /** In the order of their keys, as in the server's database. */
  #first(items: readonly Thing[]): Omit<Rest, 'path'> {
    const keyOf = ({ metadata: { namespace = '', name } }: Thing) => `${namespace}/${name}`;
    const sorted = items.toSorted((one, other) => (keyOf(one) < keyOf(other) ? -1 : 1));
    return { items: sorted, version: this.#version() };
  }

  #rest(token: string, path: string): Rest {
    if (!this.#rests.has(token)) throw new Refusal(400, 'BadRequest', 'continue key is not valid');
    const rest = this.#rests.get(token);
    if (!rest) {
      const message =
        'The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter.';
      throw new Refusal(410, 'Expired', message, { continue: 'inconsistent' });
    }
    if (rest.path !== path) throw new Refusal(400, 'BadRequest', 'continue key is of another list');
    return rest;
  }

  #token(rest: Rest): string {
    this.#tokens += 1;
    const token = Buffer.from(`{"v":"meta.k8s.io/v1","at":${this.#tokens}}`).toString('base64url');
    this.#rests.set(token, rest);
    this.onToken(token);
    return token;
  }
}

import { isCalled } from './label.ts';
import type { KeyRegistry, KeyView } from './registry.ts';
import { listRequest, readRequest } from './request.ts';

/** One page of a list of keys. */
export interface KeyPage {
  readonly rows: readonly KeyView[];
  readonly total_count: number;
  readonly current_page: number;
  readonly total_pages: number;
}

/**
 * One page of the keys that are asked for, oldest first.
 *
 * @param query `page`, `size`, `user_id`, `key_alias`
 * @throws HF_GATEWAY_KEY_REQUEST
 */
export function pageOfKeys(query: unknown, keys: KeyRegistry): KeyPage {
  const { page, size, user_id, key_alias } = readRequest(listRequest, query);
  const wanted = keys
    .list()
    .filter(({ context: { terms } }) => {
      if (!terms || (user_id !== undefined && !isCalled(terms.owner, user_id))) return false;
      return key_alias === undefined || isCalled(terms.alias, key_alias);
    })
    .sort((a, b) => (a.context.createdAt ?? 0) - (b.context.createdAt ?? 0) || (a.id < b.id ? -1 : 1));
  return {
    rows: wanted.slice((page - 1) * size, page * size),
    total_count: wanted.length,
    current_page: page,
    total_pages: Math.ceil(wanted.length / size),
  };
}

import { isObject } from '../../../core/kernel/json.ts';

/** What naming needs to know of a route. */
export interface Named {
  readonly name: string;
  readonly entry: { readonly prefix: boolean };
  /** @returns whether it offers the upstream's tool */
  readonly offers: (tool: string) => boolean;
}

/** Joins server and tool; server names hold none, so the first one splits (G10). */
const JOINT = '-';

/** @returns the name by which clients know an upstream's tool: `<server>-<tool>` */
export function shownName({ name, entry }: Named, tool: string): string {
  return entry.prefix ? `${name}${JOINT}${tool}` : tool;
}

/** @returns the upstream's own name of a tool, or undefined when the shown name is not one of this route's */
export function upstreamName({ name, entry }: Named, shown: string): string | undefined {
  if (!entry.prefix) return shown;
  const prefix = `${name}${JOINT}`;
  return shown.startsWith(prefix) ? shown.slice(prefix.length) : undefined;
}

/** @returns the server that a shown name means */
export function serverOf(shown: string): string | undefined {
  const at = shown.indexOf(JOINT);
  return at > 0 ? shown.slice(0, at) : undefined;
}

/** Which tools of a list are shown. */
export interface ToolFilter {
  readonly route: Named;
  /** The key's own list, by shown names; all when absent. */
  readonly allowed: readonly string[] | undefined;
}

/** Renames and filters the tools of a `tools/list` result; anything else is returned as it is. */
export function showTools(result: unknown, { route, allowed }: ToolFilter): unknown {
  if (!isObject(result) || !Array.isArray(result.tools)) return result;
  const tools = result.tools.flatMap((tool) => {
    if (!isObject(tool) || typeof tool.name !== 'string' || !route.offers(tool.name)) return [];
    const name = shownName(route, tool.name);
    return allowed === undefined || allowed.includes(name) ? [{ ...tool, name }] : [];
  });
  // What one key may see is not for a cache that others share.
  return { ...result, tools, ...('cacheScope' in result && { cacheScope: 'private' }) };
}

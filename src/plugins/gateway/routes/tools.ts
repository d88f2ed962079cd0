/** The tools of a route as clients see them: names with the server's prefix, and what the operator changed of single tools. */
import { isObject } from '../../../core/kernel/json.ts';
import { type CalledTool, type Message, NONE } from '../mcp/message.ts';
import type { RoutePins } from '../pins/tool-pins.ts';
import type { RouteEntry, ToolSettings } from './entry.ts';

/** Joins server and tool; server names hold none, so the first one splits (G10). */
const JOINT = '-';

/** @returns the server that a shown name means */
export function serverOf(shown: string): string | undefined {
  const at = shown.indexOf(JOINT);
  return at > 0 ? shown.slice(0, at) : undefined;
}

type Shown = Pick<RouteEntry, 'name' | 'prefix' | 'tools' | 'toolSettings' | 'approval'>;

export class RouteTools {
  readonly #entry: Shown;
  readonly #pins: RoutePins | undefined;
  #withPrefix: RouteTools | undefined;
  readonly #prefix: string;
  readonly #offered: ReadonlySet<string> | undefined;
  readonly #settings: ReadonlyMap<string, ToolSettings>;
  /** The upstream's names, by those that clients know. */
  readonly #renamed: ReadonlyMap<string, string>;
  /** Whether a person must approve calls of any tool. */
  readonly #asksAny: boolean;

  /**
   * @param entry of the route
   * @param pins what is pinned of its tools, unless the entry follows its upstream
   */
  constructor(entry: Shown, pins?: RoutePins) {
    const { name, prefix, tools, toolSettings, approval } = entry;
    this.#asksAny = [approval, ...Object.values(toolSettings).map((tool) => tool.approval)].includes('ask');
    this.#entry = entry;
    this.#pins = pins;
    this.#prefix = prefix ? `${name}${JOINT}` : '';
    this.#offered = tools && new Set(tools);
    this.#settings = new Map(Object.entries(toolSettings));
    this.#renamed = new Map(
      [...this.#settings].flatMap(([own, { name: shown }]) => (shown === undefined ? [] : [[shown, own]])),
    );
  }

  /** @returns whether the route offers a tool, by the upstream's own name of it */
  offers(tool: string): boolean {
    const isListed = (this.#offered?.has(tool) ?? true) && this.#settings.get(tool)?.hidden !== true;
    return isListed && this.#pins?.withholds(tool) !== true;
  }

  /** @returns the tool that a message calls, by the upstream's own name of it, where a person must approve the call */
  needingApproval({ method, name = '' }: Pick<Message, 'method' | 'name'>): string | undefined {
    if (!this.#asksAny || method !== 'tools/call') return undefined;
    const tool = this.upstreamName(name) ?? '';
    return (this.#settings.get(tool)?.approval ?? this.#entry.approval) === 'ask' ? tool : undefined;
  }

  /** The same tools, with the server's name before theirs in any case. */
  withPrefix(): RouteTools {
    if (this.#prefix !== '') return this;
    this.#withPrefix ??= new RouteTools({ ...this.#entry, prefix: true }, this.#pins);
    return this.#withPrefix;
  }

  /** @returns a name with the server's: `<server>-<name>` */
  prefixed(name: string): string {
    return `${this.#prefix}${name}`;
  }

  /** @returns the name by which clients know a tool */
  shownName(tool: string): string {
    return this.prefixed(this.#settings.get(tool)?.name ?? tool);
  }

  /** @returns the upstream's own name of a tool, or undefined when the shown name is not one of this route's */
  upstreamName(shown: string): string | undefined {
    if (!shown.startsWith(this.#prefix)) return undefined;
    const name = shown.slice(this.#prefix.length);
    const renamed = this.#renamed.get(name);
    if (renamed !== undefined) return renamed;
    return this.#settings.get(name)?.name === undefined ? name : undefined;
  }

  /** @returns what a call by a shown name means to the upstream; undefined as for `upstreamName` */
  upstreamTool(shown: string): CalledTool | undefined {
    const name = this.upstreamName(shown);
    if (name === undefined) return undefined;
    const { fixed = NONE, defaults = NONE } = this.#settings.get(name) ?? {};
    return { name, fixed, defaults };
  }

  /**
   * Renames, describes and filters the tools of a `tools/list` result; anything else is returned as it is.
   *
   * @param allowed the key's own list, by shown names; all when undefined
   */
  show(result: unknown, allowed: readonly string[] | undefined): unknown {
    if (!isObject(result) || !Array.isArray(result.tools)) return result;
    const tools = result.tools.flatMap((tool) => {
      if (!isObject(tool) || typeof tool.name !== 'string' || !this.offers(tool.name)) return [];
      if (this.#pins && !this.#pins.accepts(tool)) return []; // the upstream changed it a moment ago
      const name = this.shownName(tool.name);
      if (this.upstreamName(name) !== tool.name) return []; // calls by this name go to a renamed tool
      if (allowed !== undefined && !allowed.includes(name)) return [];
      const settings = this.#settings.get(tool.name);
      return [{ ...(settings ? changed(tool, settings) : tool), name }];
    });
    // What one key may see is not for a cache that others share.
    return { ...result, tools, ...('cacheScope' in result && { cacheScope: 'private' }) };
  }
}

type Definition = Readonly<Record<string, unknown>>;

/** A tool's definition as the operator wants it: no client sees a fixed argument, and none must give one with a default. */
function changed(tool: Definition, { description, fixed = {}, defaults = {} }: ToolSettings): Definition {
  const { inputSchema: schema } = tool;
  const described = { ...tool, ...(description !== undefined && { description }) };
  if (!isObject(schema)) return described;
  const { properties, required } = schema;
  const shown = Object.entries(isObject(properties) ? properties : {})
    .filter(([name]) => !Object.hasOwn(fixed, name))
    .map(([name, property]) => [
      name,
      Object.hasOwn(defaults, name) && isObject(property)
        ? { ...property, default: defaults[name] }
        : property,
    ]);
  const isAsked = (name: unknown) =>
    !Object.hasOwn(fixed, String(name)) && !Object.hasOwn(defaults, String(name));
  return {
    ...described,
    inputSchema: {
      ...schema,
      ...(isObject(properties) && { properties: Object.fromEntries(shown) }),
      ...(Array.isArray(required) && { required: required.filter(isAsked) }),
    },
  };
}

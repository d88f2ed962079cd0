import { createHmac } from 'node:crypto';
import { maskText } from '../../../core/host/logging/mask-text.ts';
import type { Services } from '../../../core/host/plugin/definition.ts';
import { canonicalJson } from '../../../core/kernel/canonical-json.ts';
import { isObject } from '../../../core/kernel/json.ts';
import type {
  PinPolicy,
  ToolChange,
  ToolPinsContext,
  ToolPrints,
} from '../../../machines/gateway/tool-pins.ts';
import { toolPinsActor, toolsSeen } from './actor.ts';

/** A tool as its upstream lists it. */
export type ToolListing = Readonly<Record<string, unknown>>;

/** What the operator pinned of one route's tools. */
export interface RoutePins {
  /** @returns whether calls of a tool wait for a person, by the upstream's own name */
  withholds(tool: string): boolean;
  /** @returns whether a definition is one that was accepted */
  accepts(definition: ToolListing): boolean;
}

/** Characters of a part that a record shows before and after. */
const LONGEST_PART = 400;
const PURPOSE = 'gateway.tool';
const MOST_TOOLS = 5_000;

/**
 * Compares the definitions of upstreams' tools with those that were accepted, and tells the actor of the route what is new;
 * an unchanged list is no record. Definitions are kept in the log, sealed, so that a change is shown part by part after a
 * restart too.
 */
export class ToolPins {
  readonly #services: Pick<Services, 'actors' | 'bus' | 'clock' | 'log' | 'vault'>;

  /** By which all hosts of a cluster name definitions alike; each host's own fingerprints are its own. */
  readonly #sharedKey: Buffer | undefined;

  constructor(
    services: Pick<Services, 'actors' | 'bus' | 'clock' | 'log' | 'vault'>,
    sharedKey: Buffer | undefined,
  ) {
    this.#services = services;
    this.#sharedKey = sharedKey;
  }

  /** @returns what is pinned of a route, as its actor knows it; undefined where its policy is to follow */
  of(route: string, policy: PinPolicy): RoutePins | undefined {
    if (policy === 'follow') return undefined;
    return {
      withholds: (tool) => {
        const { accepted, pending } = this.state(route) ?? {};
        if (!accepted || !pending) return false;
        return policy === 'block' || accepted.tools[tool] !== pending.tools[tool];
      },
      accepts: (definition) => {
        const { accepted } = this.state(route) ?? {};
        return !accepted || accepted.tools[String(definition.name)] === this.#print(definition);
      },
    };
  }

  state(route: string): ToolPinsContext | undefined {
    return this.#services.actors.get(toolPinsActor, route)?.context;
  }

  /** Takes the whole list of an upstream's tools, as a probe got it. */
  seen(route: string, policy: PinPolicy, definitions: readonly ToolListing[]): void {
    const { bus, clock, vault } = this.#services;
    const named = definitions.filter(({ name }) => typeof name === 'string').slice(0, MOST_TOOLS);
    const listed = named.map((definition) => [String(definition.name), definition] as const);
    const tools = Object.fromEntries(listed.map(([name, definition]) => [name, this.#print(definition)]));
    const state = this.state(route);
    const known = state?.pending?.tools ?? state?.accepted?.tools;
    if (state?.policy === policy && known && canonicalJson(known) === canonicalJson(tools)) return;
    const accepted = state?.accepted?.tools ?? {};
    const news = listed.filter(([name]) => accepted[name] !== tools[name]);
    const blobs = new Map(
      news.map(([name, definition]) => [
        tools[name] ?? '',
        vault.seal(JSON.stringify(essence(definition)), PURPOSE),
      ]),
    );
    const changes = state?.accepted ? this.#changes(accepted, tools, new Map(listed)) : [];
    const digest = this.#digest(named);
    const seen = { route, at: clock.now(), policy, tools, changes, ...(digest !== undefined && { digest }) };
    bus.publish(toolsSeen, seen, { blobs });
  }

  #digest(definitions: readonly ToolListing[]): string | undefined {
    if (!this.#sharedKey) return undefined;
    const texts = definitions.map((definition) => canonicalJson(essence(definition))).sort();
    return createHmac('sha256', this.#sharedKey).update(canonicalJson(texts)).digest('base64url');
  }

  #changes(
    accepted: ToolPrints,
    tools: ToolPrints,
    definitions: ReadonlyMap<string, ToolListing>,
  ): ToolChange[] {
    const names = [...new Set([...Object.keys(accepted), ...Object.keys(tools)])].sort();
    return names.flatMap((tool): ToolChange[] => {
      const [before, after] = [accepted[tool], tools[tool]];
      if (before === after) return [];
      if (before === undefined) return [{ tool, what: 'added' }];
      if (after === undefined) return [{ tool, what: 'removed' }];
      return [
        {
          tool,
          what: 'changed',
          parts: differingParts(this.#kept(before), essence(definitions.get(tool) ?? {})),
        },
      ];
    });
  }

  #kept(print: string): ToolListing {
    const { log, vault } = this.#services;
    const sealed = log.blob(print);
    const kept: unknown = sealed ? JSON.parse(vault.open(sealed, PURPOSE)) : {};
    return isObject(kept) ? kept : {};
  }

  #print(definition: ToolListing): string {
    return this.#services.vault.fingerprint(essence(definition));
  }
}

/** What of a definition steers a model or a client; `_meta` may change with each answer. */
function essence({ _meta, ...definition }: ToolListing): ToolListing {
  return definition;
}

function differingParts(before: ToolListing, after: ToolListing): NonNullable<ToolChange['parts']> {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])].sort();
  return names.flatMap((part) => {
    const [was, is] = [before[part], after[part]].map(shortText);
    return was === is && canonicalOf(before[part]) === canonicalOf(after[part])
      ? []
      : [{ part, before: was ?? '', after: is ?? '' }];
  });
}

const canonicalOf = (value: unknown): string => (value === undefined ? '' : canonicalJson(value));

function shortText(value: unknown): string {
  return maskText(typeof value === 'string' ? value : canonicalOf(value), LONGEST_PART);
}

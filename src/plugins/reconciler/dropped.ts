/** Compares consecutive configs of the router, and records what a save dropped without being asked to (R26). */
import { z } from 'zod';
import { DROPPED_PATH, type DroppedView } from '../../core/contracts/reconciler.ts';
import {
  type NetworkConfig,
  routerApiRecovered,
  routerChannels,
  routerConnected,
} from '../../core/contracts/router.ts';
import { askInstance } from '../../core/host/operations/control-client.ts';
import { serveOperation } from '../../core/host/operations/serve.ts';
import type { PluginContext, Services } from '../../core/host/plugin/definition.ts';
import { plainText } from '../../core/host/terminal.ts';
import { isCoded } from '../../core/kernel/errors/holdfast-error.ts';
import { SAVES_KEY, savesActor } from './actors.ts';
import type { Adoption } from './adoption.ts';
import type { LegPoster } from './router-access.ts';
import { NO_RECONCILER } from './unit.ts';
import {
  isList,
  leavesBelow,
  matches,
  type Path,
  partAt,
  pathText,
  type Skeleton,
  skeletonOf,
  vanished,
} from './vanished.ts';

/** How long a removal that Holdfast was asked for may take to be seen: a change may wait 120 s for its commit. */
const ASKED_MS = 300_000;
/** Paths in one record. */
const PATHS_KEPT = 50;
const READ_MS = 60_000;
/** After a change the legs read the config; who has none reads it himself after this time. */
const SETTLE_MS = 500;

export class DroppedWatch {
  readonly #services: Services;
  readonly #patterns: readonly string[];
  readonly #adoption: Adoption;
  /** When a config was last read (epoch ms). */
  readAt = 0;
  #ncid: unknown;
  #skeleton: Skeleton | undefined;
  /** Removals that Holdfast itself asks for, until when (epoch ms). */
  readonly #asked = new Map<string, number>();

  /** @param patterns of paths whose loss raises an alert */
  constructor(services: Services, adoption: Adoption, patterns: readonly string[]) {
    this.#services = services;
    this.#adoption = adoption;
    this.#patterns = patterns;
  }

  /** What Holdfast is about to post: what it leaves out is asked for, by the config that it has read for it. @returns called when the post is known not to be in force */
  willPost(body: NetworkConfig, read: NetworkConfig): () => void {
    const paths = vanished(skeletonOf(read), skeletonOf(body)).map(pathText);
    this.ask(paths);
    return () => this.forget(paths);
  }

  ask(paths: readonly string[]): void {
    for (const path of paths) this.#asked.set(path, this.#services.clock.now() + ASKED_MS);
  }

  /** Every config that is read, in the order of the readings. */
  read(config: NetworkConfig): void {
    this.readAt = this.#services.clock.now();
    if (config.ncid === this.#ncid) return;
    const before = this.#skeleton;
    this.#ncid = config.ncid;
    this.#skeleton = skeletonOf(config);
    if (!before) return;
    const now = this.#services.clock.now();
    const dropped = vanished(before, this.#skeleton).filter((path) => !this.#wasAsked(path, before, now));
    if (dropped.length === 0) return;
    const alerted = dropped.filter((path) => this.#alarms(path, before)).map(pathText);
    this.#services.logger.warn({ paths: dropped.slice(0, PATHS_KEPT).map(pathText) }, 'router.paths_dropped');
    this.#services.actors.send(savesActor, SAVES_KEY, {
      type: 'DROPPED',
      at: now,
      ncid: String(config.ncid),
      paths: dropped.slice(0, PATHS_KEPT).map(pathText),
      count: dropped.length,
      alerted: alerted.slice(0, PATHS_KEPT),
    });
  }

  /** A removal is asked for when everything that was there is: by its own path, or one above or below it. Only once. */
  #wasAsked(path: Path, before: Skeleton, now: number): boolean {
    const asked = [...this.#asked].filter(([, until]) => until >= now).map(([text]) => text);
    const leaves = leavesBelow(before, path).map(pathText);
    const answers = (text: string, leaf: string) =>
      text === leaf || text.startsWith(`${leaf}.`) || leaf.startsWith(`${text}.`);
    if (!leaves.every((leaf) => asked.some((text) => answers(text, leaf)))) return false;
    for (const text of asked) if (leaves.some((leaf) => answers(text, leaf))) this.#asked.delete(text);
    return true;
  }

  /** They are no longer asked for. */
  forget(paths: readonly string[]): void {
    for (const path of paths) this.#asked.delete(path);
  }

  /** What a leg or a field is held to comes back by itself, and has alerts of its own when it does not. */
  #alarms(path: Path, before: Skeleton): boolean {
    const [root, , intf = '', field] = path;
    const isLeg = this.#adoption.legs.some((leg) => !leg.keep && leg.intf === intf);
    const isItsOwn = path.length === 3 || field === 'ipv6';
    const isOfLeg = root === 'interface' && isItsOwn && isLeg;
    const isHeld = (isOfLeg || this.#isKept(path, before)) && !this.#adoption.isObserving();
    return !isHeld && this.#patterns.some((pattern) => matches(pattern, path));
  }

  /** Everything at this path is put back: of a list that must contain entries, those alone. */
  #isKept(path: Path, before: Skeleton): boolean {
    return this.#adoption.legs.some(({ keep }) => {
      if (!keep?.path.every((key, index) => path[index] === key)) return false;
      if (keep.match === 'equals') return true;
      const had = partAt(before, path);
      const held = skeletonOf(keep.value);
      if (!isList(had) || !isList(held)) return false;
      const now = this.#skeleton && partAt(this.#skeleton, path);
      return had.every((item) => held.includes(item) || (isList(now) && now.includes(item)));
    });
  }

  view(): DroppedView {
    const { dropped = [] } = this.#services.actors.get(savesActor, SAVES_KEY)?.context ?? {};
    return {
      saves: dropped.toReversed().map(({ at, ...save }) => ({ at: new Date(at).toISOString(), ...save })),
    };
  }
}

interface Started extends Services {
  readonly dropped: DroppedWatch;
  readonly poster: LegPoster;
}

/** Registers the actor of the saves, the readings after changes, the operations and the command. */
export function registerDropped(context: PluginContext<Started>): void {
  context.actor(savesActor);
  context.onReady(({ bus, clock, dropped, poster, logger }) => {
    const read = () =>
      poster.reader.read(AbortSignal.timeout(READ_MS)).then(undefined, (error: unknown) => {
        if (isCoded(error)) logger.debug({ code: error.code }, 'router.paths_not_compared');
        else logger.error({ err: error }, 'router.paths_not_compared');
      });
    const look = () => {
      const since = clock.now();
      clock.after(SETTLE_MS, () => {
        if (dropped.readAt < since) void read();
      });
    };
    for (const topic of [routerChannels.changeApplied, routerChannels.ifaceChangeApplied])
      bus.subscribe(topic, 'reconciler.dropped', look);
    for (const topic of [routerConnected, routerApiRecovered])
      bus.subscribe<object>(topic, 'reconciler.dropped', look);
    look();
  });
  context.control((surface, { dropped }) => {
    serveOperation(surface, DROPPED_PATH, z.strictObject({}), () => dropped.view());
    const asked = z.strictObject({
      paths: z.array(z.array(z.string())).max(10_000),
      over: z.boolean().default(false),
    });
    serveOperation(surface, `${DROPPED_PATH}/asked`, asked, ({ paths, over }) => {
      if (over) dropped.forget(paths.map(pathText));
      else dropped.ask(paths.map(pathText));
      return {};
    });
  });
  context.command({
    name: 'router dropped',
    summary: 'Lists the paths that saves of others dropped from the config, without their values',
    example: 'holdfast router dropped',
    async run(_args, _flags, command) {
      const { saves } = await askInstance<DroppedView>(command, DROPPED_PATH, {}, NO_RECONCILER);
      if (command.json) return command.print(JSON.stringify({ saves }));
      if (saves.length === 0) command.print('No save has dropped anything since it was watched.');
      for (const { at, ncid, paths, count, alerted } of saves) {
        command.print(`${at}  ncid ${ncid.slice(0, 8)}…  ${count} dropped`);
        for (const path of paths)
          command.print(`  ${plainText(path)}${alerted.includes(path) ? '  (alert raised)' : ''}`);
      }
    },
  });
}

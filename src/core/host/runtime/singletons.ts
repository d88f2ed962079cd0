import type { EffectGuard } from '../../kernel/actors/effect.ts';
import type { PluginHost } from '../plugin/host.ts';
import type { Placement } from './routes.ts';
import { type SingletonParts, SingletonWork } from './singleton-work.ts';

/**
 * The work that this host does while it holds the lease of it (docs/cluster.md): each singleton that can be on another host
 * begins and ends here as the cluster says.
 */
export class Singletons implements Placement {
  readonly #works: ReadonlyMap<string, SingletonWork>;
  readonly #byType: ReadonlyMap<string, SingletonWork>;

  /** @param host its plugins have registered */
  constructor(host: PluginHost) {
    const registrations = host.register();
    const works = [...host.movable()].map(
      ([name, plugins]) => new SingletonWork(name, { host, registrations, plugins: new Set(plugins) }),
    );
    this.#works = new Map(works.map((work) => [work.name, work]));
    this.#byType = new Map(works.flatMap((work) => work.actorTypes.map((type) => [type, work])));
  }

  /** The types of their actors. */
  get actorTypes(): readonly string[] {
    return [...this.#byType.keys()];
  }

  /** When the effects of a type of actor may be carried out; undefined of those that are on every host. */
  guardOf(actorType: string): EffectGuard | undefined {
    return this.#byType.get(actorType);
  }

  singletonOf(actorType: string): string | undefined {
    return this.#byType.get(actorType)?.name;
  }

  takesEvents(singleton: string): boolean {
    return this.#works.get(singleton)?.takesEvents ?? true;
  }

  isRunning(singleton: string): boolean {
    return this.#works.get(singleton)?.isRunning ?? false;
  }

  /** Lets this host compete for them. Called once, when everything else runs. */
  compete(parts: SingletonParts): void {
    for (const work of this.#works.values()) work.prepare(parts);
    parts.services.actors.onClockJump(() => {
      for (const work of this.#works.values()) work.followClock();
    });
    parts.cluster.compete([...this.#works.values()]);
  }

  /** Ends those that run here, and lets none begin any more. */
  async stop(reason: string): Promise<void> {
    await Promise.all([...this.#works.values()].map((work) => work.close(reason)));
  }
}

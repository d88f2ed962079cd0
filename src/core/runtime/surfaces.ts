import { controlSocket, createSurface, type Surface, type SurfaceDependencies } from '../http/index.ts';
import type { Logger } from '../logging/index.ts';
import type { ControlRegistration, Owned, RuntimeServices, SurfaceRegistration } from '../plugin/index.ts';

/** The HTTP listeners of one runtime. */
export class Surfaces {
  readonly #surfaces: { readonly owner: string; readonly surface: Surface }[] = [];
  readonly #failed: (plugin: string, error: unknown) => void;
  readonly #control: Surface | undefined;
  readonly #logger: Logger;
  readonly #urls: Record<string, { url: string }> = {};

  /** @param failed hears of a surface that cannot be had, and throws when its plugin must not fail */
  constructor(
    registrations: readonly Owned<SurfaceRegistration>[],
    controls: readonly Owned<ControlRegistration>[],
    { logger, metrics, dataDir }: RuntimeServices,
    failed: (plugin: string, error: unknown) => void,
  ) {
    this.#failed = failed;
    this.#logger = logger;
    this.#control = controlOf(controls, dataDir, { logger, metrics });
    for (const { options, build, owner } of registrations) {
      try {
        const surface = createSurface(options, { logger, metrics });
        build(surface.http);
        this.#surfaces.push({ owner, surface });
      } catch (error) {
        failed(owner, error);
      }
    }
  }

  /** Where each listens, by name. */
  get urls(): Readonly<Record<string, { url: string }>> {
    return this.#urls;
  }

  /** @throws HF_HTTP_LISTEN, HF_HTTP_TOKEN_REQUIRED of a plugin that must not fail */
  async listen(): Promise<void> {
    for (const { owner, surface } of this.#surfaces) {
      try {
        this.#urls[surface.name] = await surface.listen();
      } catch (error) {
        this.#failed(owner, error);
      }
    }
    try {
      await this.#control?.listen();
    } catch (error) {
      // A folder whose socket's name is too long, or on a disk without sockets: everything but such commands works.
      this.#logger.warn({ err: error }, 'control.unavailable');
    }
  }

  /** Answers what is under way, takes nothing new. @param deadlineMs after which connections are cut, milliseconds */
  async close(deadlineMs: number): Promise<void> {
    const all = this.#surfaces.map(({ surface }) => surface);
    if (this.#control) all.push(this.#control);
    await Promise.all(all.map((surface) => surface.close(deadlineMs)));
  }
}

/** The surface that commands of this machine write through; none when no plugin wants it. */
function controlOf(
  controls: readonly Owned<ControlRegistration>[],
  dataDir: string,
  parts: SurfaceDependencies,
): Surface | undefined {
  if (controls.length === 0) return undefined;
  const options = { name: 'control', port: 0, portVariable: '', socket: controlSocket(dataDir) };
  const surface = createSurface(options, parts);
  for (const { build } of controls) build(surface.http);
  return surface;
}

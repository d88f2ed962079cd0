import { createSurface, type Surface } from '../http/index.ts';
import type { Owned, RuntimeServices, SurfaceRegistration } from '../plugin/index.ts';

/** The HTTP listeners of one runtime. */
export class Surfaces {
  readonly #surfaces: readonly Surface[];
  readonly #urls: Record<string, { url: string }> = {};

  constructor(registrations: readonly Owned<SurfaceRegistration>[], { logger, metrics }: RuntimeServices) {
    this.#surfaces = registrations.map(({ options, build }) => {
      const surface = createSurface(options, { logger, metrics });
      build(surface.http);
      return surface;
    });
  }

  /** Where each listens, by name. */
  get urls(): Readonly<Record<string, { url: string }>> {
    return this.#urls;
  }

  /** @throws HF_HTTP_LISTEN, HF_HTTP_TOKEN_REQUIRED */
  async listen(): Promise<void> {
    for (const surface of this.#surfaces) this.#urls[surface.name] = await surface.listen();
  }

  /** Answers what is under way, takes nothing new. @param deadlineMs after which connections are cut, milliseconds */
  async close(deadlineMs: number): Promise<void> {
    await Promise.all(this.#surfaces.map((surface) => surface.close(deadlineMs)));
  }
}

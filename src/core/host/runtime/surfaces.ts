import { z } from 'zod';
import { controlSocket } from '../http/addresses.ts';
import { connectionShare, openFilesLimit } from '../http/connection-limit.ts';
import type { HttpSurface, Listener, Place, Surface, SurfaceDependencies } from '../http/contract.ts';
import { socketPath } from '../http/listen-options.ts';
import { createSurface } from '../http/surface.ts';
import type { DataCheckResult } from '../integrity/findings.ts';
import type { Logger } from '../logging/logger.ts';
import { serveOperation } from '../operations/serve.ts';
import type { RuntimeServices } from '../plugin/host.ts';
import type { ControlRegistration, Owned, SurfaceRegistration } from '../plugin/registrations.ts';
import { pruneRunning } from '../retention/prune-running.ts';
import type { MovingControls } from './moving-controls.ts';

/** The listeners of one runtime. */
export class Surfaces {
  readonly #listeners: { readonly owner: string; readonly listener: Listener }[] = [];
  readonly #failed: (plugin: string, error: unknown) => void;
  readonly #control: Surface | undefined;
  /** Of each listener. */
  readonly #maxConnections: number;
  readonly #logger: Logger;
  readonly #urls: Record<string, Place> = {};
  /** Called when one of the places is another than it was, e.g. with a renewed certificate. */
  onChange: (() => void) | undefined;

  /** @param failed called with the error of a surface; it throws when its plugin must not fail */
  constructor(
    registrations: readonly Owned<SurfaceRegistration>[],
    listeners: readonly Owned<Listener>[],
    controls: readonly Owned<ControlRegistration>[],
    moving: MovingControls,
    { logger, metrics, dataDir, senders }: RuntimeServices & Pick<SurfaceDependencies, 'senders'>,
    failed: (plugin: string, error: unknown) => void,
  ) {
    this.#failed = failed;
    this.#logger = logger;
    this.#control = controlOf(controls, moving, dataDir, { logger, metrics, senders });
    this.#maxConnections = connectionShare(openFilesLimit(), registrations.length + listeners.length);
    for (const { options, build, owner } of registrations) {
      try {
        const { socket, ...rest } = options;
        const placed = socket && { socket: { ...socket, path: socketPath(socket, dataDir) } };
        const surface = createSurface({ ...rest, ...placed }, { logger, metrics, senders });
        build(surface.http);
        this.#listeners.push({ owner, listener: surface });
      } catch (error) {
        failed(owner, error);
      }
    }
    for (const listener of listeners) this.#listeners.push({ owner: listener.owner, listener });
  }

  /** Where each listens, by name. */
  get urls(): Readonly<Record<string, Place>> {
    return this.#urls;
  }

  /** @throws HF_HTTP_LISTEN, HF_HTTP_TOKEN_REQUIRED of a plugin that must not fail */
  async listen(): Promise<void> {
    for (const { owner, listener } of this.#listeners) {
      try {
        const onPlace = (place: Place) => this.#placeChanged(listener.name, place);
        this.#urls[listener.name] = await listener.listen({ maxConnections: this.#maxConnections, onPlace });
      } catch (error) {
        this.#failed(owner, error);
      }
    }
    try {
      await this.#control?.listen();
    } catch (error) {
      // The path may be too long for a socket, or the disk have none: then all works except commands that need it.
      this.#logger.warn({ err: error }, 'control.unavailable');
    }
  }

  #placeChanged(name: string, place: Place): void {
    this.#urls[name] = place;
    try {
      this.onChange?.();
    } catch (error) {
      // A full disk must not end the process.
      this.#logger.warn({ err: error, surface: name }, 'http.place_not_announced');
    }
  }

  /** Answers what is under way, takes nothing new. @param deadlineMs after which connections are cut, milliseconds */
  async close(deadlineMs: number): Promise<void> {
    const all = this.#listeners.map(({ listener }) => listener);
    if (this.#control) all.push(this.#control);
    await Promise.all(all.map((surface) => surface.close(deadlineMs)));
  }
}

/** The surface through which commands on this machine write; undefined when nobody declares routes on it. */
function controlOf(
  controls: readonly Owned<ControlRegistration>[],
  moving: MovingControls,
  dataDir: string,
  dependencies: SurfaceDependencies,
): Surface | undefined {
  if (controls.length === 0) return undefined;
  const socket = { path: controlSocket(dataDir), mode: '0600' } as const;
  const options = {
    name: 'control',
    port: 0,
    portVariable: '',
    isControl: true,
    recordsSenders: true,
    socket,
  };
  const surface = createSurface(options, dependencies);
  for (const { build } of controls) build(surface.http);
  moving.serve(surface.http);
  return surface;
}

const pruneBody = z.strictObject({
  olderThanMs: z.int().nonnegative().optional(),
  keepBytes: z.int().nonnegative().optional(),
  /** Absolute path. */
  folder: z.string().startsWith('/').max(4_096),
});

const shredBody = z.strictObject({ keys: z.array(z.string().min(1).max(128)).max(100_000) });

/**
 * The operations of the data folder that commands call on the control socket of a running instance.
 *
 * @param checkData reads all of it now
 */
export function dataControl(
  surface: HttpSurface,
  { log, dataDir, clock }: Pick<RuntimeServices, 'log' | 'dataDir' | 'clock'>,
  checkData: () => Promise<DataCheckResult>,
): void {
  serveOperation(surface, '/log/prune', pruneBody, ({ folder, ...request }) =>
    pruneRunning(log, { dataDir, request, folder, now: clock.now() }),
  );
  serveOperation(surface, '/data/check', z.strictObject({}), () => checkData());
  serveOperation(surface, '/log/shred', shredBody, async ({ keys }) => {
    await log.shred(keys);
    return { keys };
  });
}

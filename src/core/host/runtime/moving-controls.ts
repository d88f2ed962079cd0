import type { FastifyReply, RouteHandlerMethod } from 'fastify';
import type { HoldfastError } from '../../kernel/errors/holdfast-error.ts';
import { HostError } from '../errors/host-error.ts';
import type { HttpSurface } from '../http/contract.ts';
import { createSurface } from '../http/surface.ts';
import type { Logger } from '../logging/logger.ts';
import type { ControlRegistration, Owned } from '../plugin/registrations.ts';

/**
 * The routes on the control socket of plugins that are not always on this host. Such a plugin declares its routes with what its
 * start returned, which is another each time, and a surface takes no routes any more once it listens: so a path below the
 * plugin's name leads to what the plugin declared at its newest start.
 */
export class MovingControls {
  readonly #plugins: ReadonlyMap<string, string>;
  readonly #logger: Logger;
  readonly #absent: (plugin: string, singleton: string) => HoldfastError;
  /** By plugin, then by method and path. */
  readonly #handlers = new Map<string, ReadonlyMap<string, RouteHandlerMethod>>();

  /**
   * @param plugins that declare such routes, each with the singleton that they belong to
   * @param absent gives what is answered for one that is not here
   */
  constructor(
    plugins: ReadonlyMap<string, string>,
    logger: Logger,
    absent: (plugin: string, singleton: string) => HoldfastError,
  ) {
    this.#plugins = plugins;
    this.#logger = logger;
    this.#absent = absent;
  }

  /** Declares the paths of these plugins. */
  serve(surface: HttpSurface): void {
    for (const [plugin, singleton] of this.#plugins) this.#serve(surface, plugin, singleton);
  }

  #serve(surface: HttpSurface, plugin: string, singleton: string): void {
    const [handlers, absent] = [this.#handlers, this.#absent];
    surface.all(`/${plugin}/*`, function (request, reply) {
      const declared = handlers.get(plugin);
      if (!declared) return refuse(reply, absent(plugin, singleton));
      const path = request.url.split('?', 1)[0] ?? '';
      const handler = declared.get(`${request.method} ${path}`);
      if (handler) return handler.call(this, request, reply);
      return refuse(reply, new HostError('HF_HTTP_NOT_FOUND', { method: request.method, path }));
    });
  }

  /**
   * Takes up the routes of plugins that have started.
   *
   * @throws HF_PLUGIN_CONTRACT a path does not begin with the plugin's name, or holds a parameter
   */
  begin(controls: readonly Owned<ControlRegistration>[]): void {
    for (const { owner, build } of controls) {
      const declared = new Map(this.#handlers.get(owner));
      const { http } = createSurface(
        { name: 'control', port: 0, portVariable: '' },
        { logger: this.#logger },
      );
      http.addHook('onRoute', ({ method, url, handler }) => {
        if (!url.startsWith(`/${owner}/`) || /[:*]/.test(url)) {
          const reason = `its path ${url} on the control socket is none of those that move: /${owner}/…, without parameters`;
          throw new HostError('HF_PLUGIN_CONTRACT', { plugin: owner, reason });
        }
        for (const name of [method].flat()) declared.set(`${name} ${url}`, handler);
      });
      build(http);
      this.#handlers.set(owner, declared);
    }
  }

  end(plugins: Iterable<string>): void {
    for (const plugin of plugins) this.#handlers.delete(plugin);
  }
}

/** As operations answer: whole, so that the command shows the same error. */
function refuse(reply: FastifyReply, error: HoldfastError): FastifyReply {
  return reply.code(error.status).send(error.toData());
}

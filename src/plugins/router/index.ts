/**
 * The router's network config: `router` serves it from this process (`embedded/`), `routerRemote` speaks to a router
 * elsewhere (`remote/`). Both provide `RouterApiToken`, so one of the two is enabled.
 *
 * - `config/` computes from a config alone: validation, what a change reapplies, generated files, address sets.
 * - `commands/` are the `holdfast router …` commands.
 * - `redis.ts` names the keys of a router's config in Redis, and finds the database that holds them.
 *
 * Imports core, bus and machines; no other plugin. Others reach it through `core/contracts/router.ts`.
 */
export { router } from './embedded/plugin.ts';
export { routerRemote } from './remote/plugin.ts';

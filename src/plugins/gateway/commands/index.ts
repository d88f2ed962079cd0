/**
 * The commands that ask the running instance: `gateway routes`, `reload`, `rollback`, and those of keys in `keys/`.
 */
export { keyCommands } from './keys/index.ts';
export { reloadCommand, rollbackCommand } from './reload.ts';
export { routesCommand } from './routes.ts';

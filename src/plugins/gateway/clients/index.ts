/**
 * `holdfast gateway client-config`: the entries of real clients (G21). `entries.ts` words them, `settings.ts` knows the
 * gateway that they are for.
 */
export { clientConfigCommand } from './command.ts';

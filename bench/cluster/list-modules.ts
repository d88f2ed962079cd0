/** Preloaded: writes the addresses of all modules that are loaded into the file of HOLDFAST_BENCH_MODULES. */
import { appendFileSync } from 'node:fs';
import { registerHooks } from 'node:module';

const file = process.env.HOLDFAST_BENCH_MODULES;
registerHooks({
  load(url, context, next) {
    if (file !== undefined) appendFileSync(file, `${url}\n`);
    return next(url, context);
  },
});

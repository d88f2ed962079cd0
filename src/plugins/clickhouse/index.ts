/**
 * The columnar database (O6, O7): a ClickHouse server where HOLDFAST_CLICKHOUSE_URL names one (`engine/remote.ts`), else
 * the same engine inside this process (`engine/embedded.ts`). `database.ts` makes either a `ColumnarDatabase`: bounded
 * times, coded errors (`fault.ts`), a lane for what people type (`statement.ts`). The tables are in `schema/`.
 *
 * Imports core, bus and machines; no other plugin.
 */
import { ColumnarDatabaseToken } from '../../core/adapters/columnar-database.ts';
import { SecretsStoreToken } from '../../core/adapters/secrets-store.ts';
import { HoldfastError } from '../../core/errors/index.ts';
import { definePlugin } from '../../core/plugin/index.ts';
import { Database } from './database.ts';
import type { Engine } from './engine/contract.ts';
import { openEngine, schemaOptions } from './open.ts';
import { clickhouseOptions, clickhouseVariables } from './options.ts';

/** @example clickhouse({ url: 'https://db.example.org', password: 'clickstack#admin_password', retentionDays: 14 }) */
export const clickhouse = definePlugin({
  name: 'clickhouse',
  options: clickhouseOptions,
  env: clickhouseVariables,
  wants: [SecretsStoreToken],
  provides: [ColumnarDatabaseToken],
  onFailure: 'continue',
  register(context, options) {
    let engine: Engine | undefined;
    let database: Database | undefined;

    context.provide(ColumnarDatabaseToken, () => {
      if (!database) throw new HoldfastError('HF_PLUGIN_EARLY', { plugin: 'clickhouse' });
      return database;
    });
    context.onStart(async () => {
      const { clock, dataDir, find } = context.services;
      engine = await openEngine(options, dataDir, find(SecretsStoreToken));
      database = new Database({ engine, clock, schema: schemaOptions(options) });
    });
    context.onStop(async () => {
      await engine?.close();
    });
  },
});

/**
 * The columnar database (O6, O7): a ClickHouse server where HOLDFAST_CLICKHOUSE_URL names one (`engine/remote.ts`), else
 * the same engine inside this process (`engine/embedded.ts`). `database.ts` makes a `ColumnarDatabase` of either, with
 * bounded times and coded errors. `schema.ts` knows the tables as they are, `tables.ts` makes them. Commands and doctor
 * use `questions/`; `reading/` checks statements that people type; `connection.ts` watches whether it answers; `console/` has the
 * pages of the console.
 */
import { ColumnarDatabaseToken } from '../../core/contracts/columnar-database.ts';
import { mcpRoutes } from '../../core/contracts/mcp-routes.ts';
import { SecretsStoreToken } from '../../core/contracts/secrets-store.ts';
import { definePlugin } from '../../core/host/plugin/definition.ts';
import { AgentTables } from './agent-tables.ts';
import { ColumnarBackups } from './backups/backups.ts';
import { BackupSchedule, registerBackups } from './backups/schedule.ts';
import { databaseChecks } from './checks.ts';
import { backupCommand } from './commands/backup.ts';
import { nasCommand } from './commands/nas.ts';
import { queryCommand } from './commands/query.ts';
import { verifyCommand } from './commands/verify.ts';
import { ConnectionWatch, measure, registerConnection } from './connection.ts';
import { contributePages } from './console/pages.ts';
import { Database } from './database.ts';
import { ColumnarError } from './errors.ts';
import { backupFolder, openEngine, schemaOptions } from './open.ts';
import { columnarOptions, columnarVariables } from './options.ts';
import { serveQuestions } from './questions/questions.ts';

/**
 * The plugin `columnar`: the columnar database, elsewhere or in this process, and questions to it.
 *
 * @example columnar({ url: 'https://db.example.org', password: 'clickstack#admin_password', retentionDays: 14 })
 * @public
 */
export const columnar = definePlugin({
  name: 'columnar',
  about: {
    area: 'Telemetry stack',
    what: 'the columnar database, elsewhere or in this process, and questions to it',
    docs: 'stack.md',
  },
  options: columnarOptions,
  errors: ColumnarError,
  env: columnarVariables,
  variables: {
    HOLDFAST_CLICKHOUSE_URL: 'HTTP port of a ClickHouse server, instead of the embedded engine.',
    HOLDFAST_CLICKHOUSE_USER: 'Its user.',
    HOLDFAST_CLICKHOUSE_PASSWORD_FILE: 'File (mode 0600) with the password.',
    HOLDFAST_CLICKHOUSE_PASSWORD_SECRET: 'Place of the password in the secrets store.',
    HOLDFAST_CLICKHOUSE_CA_FILE: 'Authority of its certificate.',
    HOLDFAST_CLICKHOUSE_INSECURE:
      'Whether its password may go to another machine over http; not unless `true`.',
    HOLDFAST_CLICKHOUSE_DATABASE: 'Database of the signal tables.',
    HOLDFAST_RETENTION_DAYS: 'Days for which signals are kept.',
  },
  wants: [SecretsStoreToken],
  provides: [ColumnarDatabaseToken],
  onFailure: 'continue',
  hostBound: ({ url }) => url === undefined,
  async start(services, options) {
    const { bus, clock, dataDir, find, logger, metrics } = services;
    const ready = Promise.withResolvers<void>();
    const engine = await openEngine(options, dataDir, find(SecretsStoreToken), ready.promise);
    const count = measure(metrics, () => watch.isConnected);
    const database = new Database({
      engine,
      clock,
      schema: schemaOptions(options),
      observe(observed) {
        count(observed);
        if (observed.fault?.code === 'HF_COLUMNAR_UNREACHABLE') watch.checkNow();
      },
    });
    const reconnect = () => engine.reconnect();
    const { checkMs } = options;
    const watch = new ConnectionWatch({ database, bus, clock, logger, checkMs, reconnect });
    const files =
      engine.kind === 'embedded' ? new ColumnarBackups(engine, backupFolder(options, dataDir)) : undefined;
    const backups = files && new BackupSchedule(services, options, files);
    return { engine, database, watch, ready, backups };
  },
  register(context, options) {
    registerConnection(context);
    registerBackups(context, options);
    context.command(backupCommand());
    context.overwrites('columnar/status'); // the engine's own note of who holds the folder
    context.provide(ColumnarDatabaseToken, ({ database }) => database);
    contributePages(context, options);
    context.control((surface, { database }) => serveQuestions(surface, database));
    context.health('columnar', ({ watch }) => watch.health());
    context.contribute(mcpRoutes, ({ database }) => ({
      name: 'columnar_ro',
      onDemand: true,
      server: async () => (await import('./mcp-server.ts')).columnarServer(database),
    }));
    context.contribute(mcpRoutes, ({ engine }) => {
      const tables = new AgentTables(engine);
      const server = async () => (await import('./mcp-server.ts')).agentTablesServer(tables);
      return { name: 'columnar_rw', onDemand: true, server, writes: true };
    });
    for (const command of [verifyCommand, nasCommand, queryCommand]) context.command(command(options));
    for (const check of databaseChecks(options)) context.check(check);
    context.onReady(({ ready, watch, backups }) => {
      ready.resolve();
      watch.start();
      backups?.start();
    });
    context.onStop(async ({ watch, engine, backups }) => {
      backups?.stop();
      await watch.stop();
      await engine.close();
    });
  },
});

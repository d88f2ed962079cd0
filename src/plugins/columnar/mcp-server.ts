/**
 * Logs, metrics and spans as an MCP server behind the gateway, the route `columnar_ro`: the questions of `holdfast stack`
 * and reading SQL, by the same lane and bounds as the commands. A route of that name with an upstream replaces it.
 */
import { McpServer } from '@modelcontextprotocol/server';
import { z } from 'zod';
import { SIGNAL_TABLES } from '../../core/contracts/columnar-tables.ts';
import { addTool } from '../../core/contracts/mcp-tool.ts';
import { version } from '../../core/kernel/version.ts';
import { type AgentTables, agentRequests } from './agent-tables.ts';
import { type AnswerText, tableOf } from './answer.ts';
import type { Database } from './database.ts';
import { answerQuestion } from './questions/questions.ts';

const SECONDS = 25;
const MOST_ROWS = 1_000;

/** Makes the server of one session. */
export function columnarServer(database: Database): McpServer {
  const server = new McpServer(
    { name: 'columnar_ro', version },
    {
      instructions:
        'Logs, metrics and traces in OpenTelemetry tables of a ClickHouse engine. Begin with `verify` (what arrives, and what is wrong) or `tables`; `schema` names the columns, `query` asks anything else. Nothing can be changed here.',
    },
  );
  addTool(server, {
    name: 'tables',
    description: 'Lists the tables with their engines, and those whose engine is not the expected one.',
    input: z.object({}),
    answer: (_given, signal) => answerQuestion('drift', { seconds: SECONDS }, database, signal),
  });
  addTool(server, {
    name: 'schema',
    description: 'Names the columns and types of a table, before a query is written.',
    input: z.object({ table: z.enum(SIGNAL_TABLES) }),
    async answer({ table }) {
      const { columns, engine, isOurs } = await database.schema(table);
      return { table, engine, isOurs, columns: [...columns].map(([name, type]) => ({ name, type })) };
    },
  });
  addTool(server, {
    name: 'query',
    description:
      'Asks one reading statement in the SQL of ClickHouse (SELECT, SHOW, DESCRIBE, EXPLAIN), bounded in time, memory and rows. Aggregate in the database; page with LIMIT and OFFSET.',
    input: z.object({
      sql: z.string().min(1).max(20_000),
      limit: z.int().min(1).max(MOST_ROWS).default(100).describe('The most rows of the answer'),
    }),
    async answer({ sql, limit }, signal) {
      const answer = await answerQuestion('ask', { sql, limit, seconds: SECONDS }, database, signal);
      const { columns, rows, truncated, elapsedMs } = await tableOf(answer as AnswerText, limit);
      return { columns, rows, truncated, elapsedMs: Math.round(elapsedMs) };
    },
  });
  addTool(server, {
    name: 'verify',
    description:
      'Says what arrived in the last hour, by signal, service, namespace and MCP server, and what is wrong with it, each with what to do.',
    input: z.object({}),
    answer: (_given, signal) => answerQuestion('verify', { seconds: SECONDS }, database, signal),
  });
  addTool(server, {
    name: 'nas',
    description:
      'Says whether a NAS sends its logs, host metrics and backup freshness, and what failed there.',
    input: z.object({ host: z.string().min(1).max(253).describe('Its host.name') }),
    answer: ({ host }, signal) => answerQuestion('nas', { host, seconds: SECONDS }, database, signal),
  });
  addTool(server, {
    name: 'retention',
    description: 'Says for how long each table keeps its rows, and whether that is what was asked for.',
    input: z.object({}),
    answer: (_given, signal) => answerQuestion('retention', { seconds: SECONDS }, database, signal),
  });
  return server;
}

/** Makes the server of one session of the route `columnar_rw`: tables of agents' own, in a database of their own. */
export function agentTablesServer(tables: AgentTables): McpServer {
  const server = new McpServer(
    { name: 'columnar_rw', version },
    {
      instructions:
        'Tables of your own in a columnar database, apart from the telemetry: make one, insert rows, read them back.',
    },
  );
  addTool(server, {
    name: 'tables',
    description: 'Lists your tables with their columns, rows and bytes.',
    input: z.strictObject({}),
    answer: (_given, signal) => tables.list(signal),
  });
  addTool(server, {
    name: 'read',
    description: 'Reads the rows of a table, page by page.',
    input: agentRequests.read,
    answer: (given, signal) => tables.read(given, signal),
  });
  const adds = { readOnlyHint: false, destructiveHint: false, openWorldHint: false } as const;
  addTool(server, {
    name: 'create_table',
    description: 'Makes a table.',
    input: agentRequests.create,
    annotations: adds,
    answer: (given, signal) => tables.create(given, signal),
  });
  addTool(server, {
    name: 'add_column',
    description: 'Adds a column to a table; older rows have its default.',
    input: agentRequests.addColumn,
    annotations: adds,
    answer: (given, signal) => tables.addColumn(given, signal),
  });
  addTool(server, {
    name: 'insert',
    description: 'Inserts rows, objects by column; what a row does not name gets the default of its column.',
    input: agentRequests.insert,
    annotations: adds,
    answer: (given, signal) => tables.insert(given, signal),
  });
  addTool(server, {
    name: 'drop_table',
    description: 'Removes a table with all its rows, for ever.',
    input: agentRequests.drop,
    annotations: { readOnlyHint: false, destructiveHint: true, openWorldHint: false },
    answer: (given, signal) => tables.drop(given, signal),
  });
  return server;
}

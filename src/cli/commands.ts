/**
 * The commands of core: their words, flags and help. What carries a command out is imported only when it runs, so that
 * `holdfast --help` loads none of it. Plugins add theirs with `ctx.command`.
 */
import type { CommandDefinition, CommandFlag, CommandRun } from '../core/host/plugin/command.ts';

/** How a place in the log is written, for the help of every command that takes one. */
const PLACE =
  "a record's number, or a time: 2026-01-31T03:05, 03:05 (the last time it was) or 15m (ago); UTC";

const rangeFlags: readonly CommandFlag[] = [
  { flags: '--from <place>', summary: PLACE },
  { flags: '--to <place>', summary: 'the same, inclusive' },
];

const storyFlags: readonly CommandFlag[] = [
  {
    flags: '--actor <actor>',
    summary: 'an address, an actor type or its last word, or a key; * stands for anything',
  },
  { flags: '--correlation <id>', summary: 'a correlation id, or its last characters as the lines show them' },
];

const selectionFlags: readonly CommandFlag[] = [
  ...storyFlags,
  { flags: '--type <event>', summary: 'an event type, in any case; * stands for anything' },
];

const hostFlag: CommandFlag = {
  flags: '--host <name>',
  summary: 'the log of that host of the cluster, as NATS holds it; `all` for those of all hosts',
};

const oneHostFlag: CommandFlag = {
  flags: '--host <name>',
  summary: 'the log of that host of the cluster, as NATS holds it',
};

/** Of a command that takes times: all hosts have no record in common. */
const hostAtTimeFlag: CommandFlag = {
  ...hostFlag,
  summary: `${hostFlag.summary}, at times of the clock that they share`,
};

const everyRecord: CommandFlag = {
  flags: '--all',
  summary: 'every record on a line of its own, including routine ones',
};

const runtimeCommands: readonly CommandDefinition[] = [
  {
    name: 'start',
    summary: 'Starts everything that plugins.config.ts lists, and runs until it receives a signal',
    example: 'HOLDFAST_ROUTER_PORT=0 holdfast start --data-dir /var/lib/holdfast',
    untilInterrupted: true,
    flags: [
      {
        flags: '--adopt <host>',
        summary:
          'take the place of a host of the cluster that is lost, from its log in NATS; the data folder is empty',
      },
      { flags: '--force', summary: 'with --adopt: also when that host still seems to run' },
      { flags: '--reason <text>', summary: 'with --adopt: why; it is recorded' },
    ],
    run: lazily(async () => (await import('./start.ts')).start),
  },
  {
    name: 'status',
    summary: 'Shows the state of the instance, running or stopped; exit 1 unless it is healthy',
    example: 'holdfast status --json | jq .transaction',
    run: lazily(async () => (await import('./status.ts')).showStatus),
  },
  {
    name: 'doctor [area]',
    summary: 'Checks everything from outside and says what to do; exit 1 when something has to be fixed',
    example: 'holdfast doctor router --json',
    run: lazily(async () => (await import('./doctor.ts')).diagnose),
  },
  {
    name: 'data check',
    summary: 'Reads everything in the data folder now and names what is damaged; exit 1 when something is',
    example: 'holdfast data check --data-dir /var/lib/holdfast',
    run: lazily(async () => (await import('./data-check.ts')).checkData),
  },
  {
    name: 'graph',
    summary: 'Draws which topic leads to which actor, effect and adapter, as a Mermaid flowchart',
    example: 'holdfast graph > graph.mmd',
    run: lazily(async () => (await import('./graph.ts')).drawGraph),
  },
];

const pluginCommands: readonly CommandDefinition[] = [
  {
    name: 'plugin new <name>',
    summary: 'Writes a small plugin with its test into plugins/<name>, and lists it in plugins.config.ts',
    example: 'holdfast plugin new ups-watcher --machine',
    flags: [
      {
        flags: '--route',
        summary: 'tools for agents behind the gateway, served in this process (the default)',
      },
      { flags: '--machine', summary: 'a machine with a timer and an effect, which decides and is recorded' },
      { flags: '--adapter', summary: 'another implementation of what plugins share, here a secrets store' },
      { flags: '--check', summary: 'a check of `holdfast doctor`' },
    ],
    run: lazily(async () => (await import('./plugin/new.ts')).newPlugin),
  },
  {
    name: 'plugin list',
    summary: 'Lists the plugins: what runs, what each provides, and from where it comes',
    example: 'holdfast plugin list --json',
    run: lazily(async () => (await import('./plugin/list.ts')).listPlugins),
  },
  {
    name: 'plugin test [name]',
    summary: "Runs the tests of the project's plugins, or of one",
    example: 'holdfast plugin test ups-watcher',
    run: lazily(async () => (await import('./plugin/test.ts')).testPlugins),
  },
];

const logCommands: readonly CommandDefinition[] = [
  {
    name: 'log list [source...]',
    summary: 'Lists records, the newest last',
    example: 'holdfast log list --from 03:00 --actor reconciler',
    flags: [
      ...rangeFlags,
      ...selectionFlags,
      {
        flags: '--grep <text>',
        summary: 'a text that the line prints, in any case; or /expression/, which must run in linear time',
      },
      { flags: '--failed', summary: 'only records that say that something failed or was refused' },
      { flags: '--limit <n>', summary: 'how many lines at most, the newest; 0 for all', default: '50' },
      everyRecord,
      hostFlag,
    ],
    run: lazily(async () => (await import('./log/read.ts')).listRecords),
  },
  {
    name: 'log show <seq> [source...]',
    summary: 'Shows one record in full, with its cause and its consequences',
    example: 'holdfast log show 41',
    flags: [oneHostFlag],
    run: lazily(async () => (await import('./log/read.ts')).showRecord),
  },
  {
    name: 'log tail [source]',
    summary: 'Shows the newest records, and follows on a terminal; with --json one JSON document a line',
    example: 'holdfast log tail -n 50 --actor router.config/default --follow',
    untilInterrupted: true,
    flags: [
      { flags: '-n, --lines <n>', summary: 'how many lines to start with', default: '20' },
      { flags: '--follow', summary: 'keep showing new records (the default on a terminal)' },
      { flags: '--no-follow', summary: 'stop after the newest record' },
      ...selectionFlags,
      everyRecord,
    ],
    run: lazily(async () => (await import('./log/read.ts')).tailRecords),
  },
  {
    name: 'log export [source]',
    summary: 'Writes the log, or a part of it that can be replayed, to one file',
    example: 'holdfast log export --from 03:00 --to 03:15 --html incident.html',
    flags: [
      { flags: '--out <file>', summary: 'the file to write; compressed when it ends in .gz or .zst' },
      { flags: '--html <file>', summary: 'one page with the log and the console, for any browser; or both' },
      ...rangeFlags,
      ...storyFlags,
      { ...hostFlag, summary: `${hostFlag.summary}, one file each in the folder of --out` },
    ],
    run: lazily(async () => (await import('./log/transfer.ts')).exportLog),
  },
  {
    name: 'log import <file>',
    summary: 'Imports an exported file into an empty data folder, and checks every record',
    example: 'holdfast log import incident.jsonl.gz --data-dir ./incident',
    run: lazily(async () => (await import('./log/transfer.ts')).importFile),
  },
  {
    name: 'log verify [source...]',
    summary: 'Checks that no record was changed and none is missing; otherwise names the first and exits 1',
    example: 'holdfast log verify --anchor 1204:9f86d081…',
    flags: [
      {
        flags: '--anchor <seq:hash>',
        summary: 'a head that an earlier check printed: finds a log that was cut off or rewritten since',
      },
      {
        flags: '--public-key <key>',
        summary: 'the key that must have signed the log, as this command prints it where the log was written',
      },
      {
        flags: '--witness <file>',
        summary: 'the heads that data.witness got: finds a past that was rewritten and signed anew',
      },
      hostFlag,
    ],
    run: lazily(async () => (await import('./log/verify.ts')).verifyLog),
  },
  {
    name: 'log repair',
    summary: 'Saves what can be read of a damaged log into a new one, which records what is missing',
    example: 'holdfast log repair --data-dir ./copy-of-the-folder',
    run: lazily(async () => (await import('./log/repair.ts')).repairDamagedLog),
  },
  {
    name: 'log prune',
    summary: 'Moves the oldest records to an archive, also while the instance is running',
    example: 'holdfast log prune --older-than 30d --dry-run',
    flags: [
      { flags: '--older-than <age>', summary: 'archive records older than this: 30d, 12h, 15m, 90s' },
      {
        flags: '--keep-size <size>',
        summary: 'archive the oldest until the database is no larger than this: 500MB, 2GB',
      },
      { flags: '--archive <dir>', summary: 'where the archive goes (default: archive in the data folder)' },
      { flags: '--dry-run', summary: 'show what would be archived, and change nothing' },
    ],
    run: lazily(async () => (await import('./log/remove.ts')).pruneLog),
  },
  {
    name: 'log shred [fingerprint]',
    summary: 'Makes stored configs unreadable for ever; the records and their chain stay',
    example: 'holdfast log shred fp_0b6ac3a52f1be8b6c3b1d0a7fd9c8a11',
    flags: [
      {
        flags: '--older-than <age>',
        summary: 'all that were stored longer ago than this (30d, 12h, 0s) and are no longer in use',
      },
    ],
    run: lazily(async () => (await import('./log/remove.ts')).shredBodies),
  },
];

const replayCommands: readonly CommandDefinition[] = [
  {
    name: 'replay verify [source...]',
    summary: 'Checks the chain of the log, and that the machines repeat every decision in it',
    example: 'holdfast replay verify --data-dir .holdfast',
    flags: [
      {
        flags: '--strict',
        summary: 'exit 1 also when records could not be compared (older or unknown machines)',
      },
      hostFlag,
    ],
    run: lazily(async () => (await import('./replay/verify.ts')).verifyReplay),
  },
  {
    name: 'replay at <place> [source...]',
    summary: `Shows the state of every actor at a place: ${PLACE}`,
    example: 'holdfast replay at 03:05 incident.jsonl.gz --actor router.config',
    flags: [
      { flags: '--actor <actor>', summary: 'only these actors, in full; * stands for anything' },
      hostAtTimeFlag,
    ],
    run: lazily(async () => (await import('./replay/inspect.ts')).showMoment),
  },
  {
    name: 'replay diff <a> <b> [source...]',
    summary: 'Shows how every actor changed between two records or times',
    example: 'holdfast replay diff 30 59 incident.jsonl',
    flags: [hostAtTimeFlag],
    run: lazily(async () => (await import('./replay/inspect.ts')).showDifference),
  },
  {
    name: 'replay step [source]',
    summary: 'Steps through the log record by record, on a terminal; ? shows the keys',
    example: 'holdfast replay step incident.jsonl.gz --at 03:05',
    untilInterrupted: true,
    flags: [{ flags: '--at <place>', summary: `start at this place: ${PLACE}` }, oneHostFlag],
    run: lazily(async () => (await import('./step/run.ts')).step),
  },
  {
    name: 'replay explain <seq> [source...]',
    summary: 'Explains in sentences what led to a record, from the first cause on',
    example: 'holdfast replay explain 59 incident.jsonl',
    flags: [oneHostFlag],
    run: lazily(async () => (await import('./replay/inspect.ts')).explainRecord),
  },
  {
    name: 'replay what-if [source]',
    summary:
      'Replays the log with events dropped, changed or inserted, or with other machines; lists what differs',
    example: `holdfast replay what-if incident.jsonl --set 30 '{"op":"commit"}'`,
    flags: [
      {
        flags: '--drop <seq>',
        summary: 'leave this record out; may be given several times',
        repeatable: true,
      },
      {
        flags: '--set <seq-and-patch...>',
        summary: 'change the event of a record: its number, then a JSON patch or merge patch',
      },
      {
        flags: '--insert <file>',
        summary: 'add events from a file of JSON Lines {"after", "actor", "event", "at"?}',
      },
      {
        flags: '--machines <module>',
        summary: 'use the machines of a module that exports actor definitions',
      },
      { flags: '--limit <n>', summary: 'how many differences are shown; 0 for all', default: '20' },
      oneHostFlag,
    ],
    run: lazily(async () => (await import('./replay/what-if.ts')).whatIf),
  },
];

/** In the order of the help. */
export const coreCommands: readonly CommandDefinition[] = [
  ...runtimeCommands,
  ...pluginCommands,
  ...logCommands,
  ...replayCommands,
];

function lazily(load: () => Promise<CommandRun>): CommandRun {
  return async (...call) => (await (await load())(...call)) ?? 0;
}

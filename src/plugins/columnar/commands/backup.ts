import { existsSync, mkdirSync, readdirSync } from 'node:fs';
import { resolve } from 'node:path';
import { HostError } from '../../../core/host/errors/host-error.ts';
import { askInstance } from '../../../core/host/operations/control-client.ts';
import type { CommandContext, CommandDefinition } from '../../../core/host/plugin/command.ts';
import { sizeText } from '../../../core/host/size.ts';
import { counted } from '../../../core/host/terminal.ts';
import type { ColumnarBackup, ColumnarDrill } from '../../../machines/columnar/backups.ts';
import { restoreInto } from '../backups/backups.ts';
import { BACKUPS_PATH } from '../backups/schedule.ts';
import { ColumnarError } from '../errors.ts';

const NAME = 'backup columnar';
const MISSING = 'it has no columnar database';

interface Listed {
  readonly folder: string;
  readonly backups: readonly { readonly name: string; readonly size: number; readonly rows: number }[];
}

/** `holdfast backup columnar`: makes, lists and drills backups of the embedded columnar database. */
export function backupCommand(): CommandDefinition {
  return {
    name: NAME,
    summary:
      'Backs up the embedded columnar database, or restores a backup elsewhere to prove it; exit 1 not proven',
    example: 'holdfast backup columnar --drill',
    flags: [
      {
        flags: '--drill',
        summary: 'restores the newest backup into a scratch folder and compares every table',
      },
      { flags: '--name <file>', summary: 'another backup than the newest, with --drill' },
      { flags: '--restore <file>', summary: 'restores a backup into the folder of --to; needs no instance' },
      { flags: '--to <folder>', summary: 'a folder that is empty or not there, for --restore' },
      { flags: '--list', summary: 'lists the backups, newest first' },
    ],
    async run(_args, { drill, list, name, restore, to }, context) {
      if (restore !== undefined || to !== undefined)
        return restoreTo(String(restore ?? ''), String(to ?? ''), context);
      if ((drill && list) || (name !== undefined && !drill)) {
        const reason = drill ? 'Give one of --drill and --list.' : '--name belongs to --drill.';
        throw new HostError('HF_CLI_USAGE', { reason, command: NAME });
      }
      if (list) return show(context, await ask<Listed>(context, { op: 'list' }), listLines);
      if (!drill) return show(context, await ask<ColumnarBackup>(context, { op: 'make' }), madeLines);
      const question = { op: 'drill', ...(name !== undefined && { name }) };
      const found = await ask<ColumnarDrill>(context, question);
      show(context, found, drillLines);
      return found.proven ? 0 : 1;
    },
  };
}

/** The folder can then be used as the option `folder`, or replace a lost one. */
async function restoreTo(backup: string, to: string, context: CommandContext): Promise<number> {
  const [file, folder] = [resolve(backup), resolve(to)];
  const wrong =
    backup === '' || to === ''
      ? '--restore and --to belong together.'
      : !existsSync(file)
        ? `There is no file ${file}.`
        : existsSync(folder) && readdirSync(folder).length > 0
          ? `${folder} is not empty.`
          : undefined;
  if (wrong !== undefined) throw new HostError('HF_CLI_USAGE', { reason: wrong, command: NAME });
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  context.terminal.progress('it is restored…');
  const restored = await restoreInto(folder, file, context.signal);
  context.terminal.progress('');
  if ('reason' in restored) throw new ColumnarError('HF_COLUMNAR_BACKUP', { reason: restored.reason });
  const lines = ({ tables }: typeof restored) =>
    tables.map(({ table, rows }) => `${table}: ${counted(Number(rows), 'row')}`);
  return show(context, restored, lines);
}

async function ask<T extends object>(context: CommandContext, question: object): Promise<T> {
  context.terminal.progress('the instance works…');
  try {
    return await askInstance<T>(context, BACKUPS_PATH, question, MISSING);
  } finally {
    context.terminal.progress('');
  }
}

function show<T>({ json, print }: CommandContext, answer: T, lines: (answer: T) => string[]): number {
  for (const line of json ? [JSON.stringify(answer)] : lines(answer)) print(line);
  return 0;
}

function madeLines({ name, size, sha256, tables }: ColumnarBackup): string[] {
  const rows = tables.reduce((sum, each) => sum + Number(each.rows), 0);
  return [
    `${name} (${sizeText(size)}): ${counted(rows, 'row')} of ${counted(tables.length, 'table')}`,
    `sha256 ${sha256}`,
  ];
}

function listLines({ backups, folder }: Listed): string[] {
  if (backups.length === 0) return [`There is no backup in ${folder} yet: run holdfast backup columnar`];
  return backups.map(({ name, size, rows }) => `${name}  ${sizeText(size)}  ${counted(rows, 'row')}`);
}

function drillLines({ name, proven, reasons }: ColumnarDrill): string[] {
  if (proven) return [`PROVEN: ${name} was restored, and every table is as it was backed up`];
  return [`NOT PROVEN: ${name}`, ...reasons.map((reason) => `  ${reason}`)];
}

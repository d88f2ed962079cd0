import { resolve } from 'node:path';
import type { CommandDefinition } from '../../core/host/plugin/command.ts';
import { makeDataFolder } from '../data-folder.ts';

/** `holdfast log import`: a data folder's log from an exported file (C6). */
export const logImport: CommandDefinition = {
  name: 'log import <file>',
  summary: 'make the log of an empty data folder from an exported file, every record checked',
  example: 'holdfast log import incident.jsonl.gz --data-dir ./incident',
  async run([file = ''], _flags, { dataDir, json, print, signal }) {
    const { importLog } = await import('../../core/kernel/log/portable/import.ts');
    makeDataFolder(dataDir);
    const { header, records } = await importLog(resolve(file), dataDir, signal);
    if (json) return print(JSON.stringify({ dataDir, records, header }, null, 2));
    print(`Imported records ${header.range.from} to ${header.range.to} into ${dataDir}, chain ok.`);
    print('Sealed configs are not in an export: a runtime that goes on from here cannot revert to them.');
  },
};

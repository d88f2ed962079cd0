import { resolve } from 'node:path';
import { HostError } from '../../../core/host/errors/host-error.ts';
import { askInstance, operatorName } from '../../../core/host/operations/control-client.ts';
import type { CommandRun } from '../../../core/host/plugin/command.ts';
import { recover } from '../../../core/kernel/actors/recover.ts';
import { portableHeader, portableLines } from '../../../core/kernel/log/portable/export.ts';
import { writePortable } from '../../../core/kernel/log/portable/file.ts';
import { findLogKey } from '../../../core/kernel/log/signing.ts';
import { SqliteReader } from '../../../core/kernel/log/sqlite-reader.ts';
import { ClusterError } from '../errors.ts';
import { exportPartOf, type OrphanedBranch, OrphanedBranches } from '../mirror/orphans.ts';
import { type ClusterView, PATHS } from '../operate/view.ts';

/** `holdfast cluster orphans export`: one orphaned branch as a portable log, which the commands over logs read. */
export const exportOrphan: CommandRun = async ([number = '', path = ''], { reason: why }, context) => {
  const { dataDir, signal, json, print } = context;
  if (!/^[1-9]\d{0,5}$/.test(number)) {
    const reason = 'A number of `holdfast cluster orphans` is wanted.';
    throw new HostError('HF_CLI_USAGE', { reason, command: 'cluster orphans export' });
  }
  const file = resolve(path);
  const reader = new SqliteReader(dataDir);
  let [branch, bytes]: [OrphanedBranch | undefined, number] = [undefined, 0];
  try {
    branch = new OrphanedBranches(dataDir, reader, () => {}).list()[Number(number) - 1];
    if (!branch) throw new ClusterError('HF_CLUSTER_BRANCH', { number });
    const part = exportPartOf(reader, branch);
    const header = portableHeader(reader, part, Date.now());
    const before = recover(reader, header.range.from - 1).states.values();
    const lines = portableLines(reader, part, header, before, findLogKey(dataDir));
    bytes = await writePortable(file, lines, signal);
  } finally {
    reader.close();
  }
  const act = { by: operatorName(), ...(why !== undefined && { reason: why }) };
  const alone = new ClusterError('HF_CLUSTER_ALONE', { dir: context.dataDir });
  await askInstance<ClusterView>(context, PATHS.exported, { number: Number(number), ...act }, alone);
  const { singleton, by, records = 0 } = branch;
  if (json) return print(JSON.stringify({ file, bytes, singleton, by, records }));
  print(`Exported ${records} records of ${singleton}, which ${by} had taken over, to ${path}`);
  print(`Look at them: holdfast log list ${path}`);
};

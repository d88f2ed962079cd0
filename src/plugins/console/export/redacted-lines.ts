import { shownStateWithin, shownWithin } from '../../../core/host/history/shown.ts';
import { PAGE, redact } from '../../../core/host/logging/redact.ts';
import type { ActorState } from '../../../core/kernel/actors/transition.ts';
import { jsonEqual } from '../../../core/kernel/json.ts';
import {
  headerLine,
  type PortableHeader,
  parseHeader,
  parseLine,
  recordLine,
  stateLine,
} from '../../../core/kernel/log/portable/format.ts';
import { checkRecord } from '../../../core/kernel/log/record.ts';

/** What was seen while lines were redacted. */
export interface SeenLines {
  records: number;
  /** Records in which a text was redacted. */
  readonly redacted: number[];
  readonly actors: Set<string>;
}

/** What errors call the lines. */
const SOURCE = 'the export';

/** A name as `shown` has it in records. */
export const freeText = (text: string): string => String(redact(text));

/** Names of actors are texts, too. */
function freeHeader(header: PortableHeader): PortableHeader {
  const { machines, actors, correlation } = header;
  return {
    ...header,
    machines: Object.fromEntries(Object.entries(machines).map(([type, one]) => [freeText(type), one])),
    ...(actors && { actors: actors.map(freeText) }),
    ...(correlation !== undefined && { correlation: freeText(correlation) }),
  };
}

/**
 * The lines of an export with their secrets redacted, as `holdfast log` redacts them. A record without any stays byte for
 * byte as it was hashed; signatures are left out.
 *
 * @param lines of a portable file, with their ends
 * @param seen grows while the lines are read
 */
export function* redactedLines(lines: Iterable<string>, seen: SeenLines): Generator<string> {
  let isHeader = true;
  for (const line of lines) {
    if (isHeader) {
      isHeader = false;
      yield headerLine(freeHeader(parseHeader(line.trimEnd(), SOURCE)));
      continue;
    }
    const parsed = parseLine(line.trimEnd(), SOURCE, 0);
    switch (parsed.kind) {
      case 'state': {
        const state: ActorState = JSON.parse(parsed.body);
        seen.actors.add(state.ref);
        yield stateLine({ ...shownStateWithin(state, PAGE), ref: freeText(state.ref) });
        break;
      }
      case 'record': {
        const { hash, previous } = parsed;
        const record = checkRecord(0, parsed.value, false);
        seen.records += 1;
        seen.actors.add(record.actor);
        const free = shownWithin(record, PAGE);
        if (jsonEqual(free, record)) yield line;
        else {
          seen.redacted.push(record.seq);
          yield recordLine(hash, JSON.stringify(free), previous);
        }
        break;
      }
      case 'signature':
        break;
      case 'end':
        yield line;
        break;
    }
  }
}

import type { SQLInputValue, SQLOutputValue, StatementSync } from 'node:sqlite';
import type { RawRecord, SearchRange } from './event-log.ts';
import { indexTable } from './record-index.ts';
import { sound } from './schema.ts';
import type { Statements } from './statements.ts';

/** Records that are read at once: the event loop waits for them. */
const PAGE = 250;
/** Records of one actor that are looked at in a step of a search among them. */
const STEP = 250;

/** What the records of a search have in common. */
interface Wanted {
  readonly correlation: string | undefined;
  readonly actor: string | undefined;
}

function rawRecordOf({ seq, actor, correlation, body, hash }: Record<string, SQLOutputValue>): RawRecord {
  return {
    seq: Number(seq),
    actor: String(actor),
    correlation: String(correlation),
    body: String(body),
    hash: String(hash),
  };
}

/** Finds records of a log: in the index by actor and correlation as far as that goes, beyond it in the table itself. */
export class RecordSearch {
  readonly #statements: Statements;
  readonly #hasIndex: boolean;

  /** @param hasIndex an earlier release made none */
  constructor(statements: Statements, hasIndex: boolean) {
    this.#statements = statements;
    this.#hasIndex = hasIndex;
  }

  /**
   * Raw rows a page at a time. Each page is a query of its own: an open iterator would keep the write-ahead log
   * from being checkpointed.
   */
  *pages({
    from,
    to,
    actor,
    correlation,
    reverse,
    limit,
    holding = [],
  }: SearchRange = {}): Iterable<RawRecord[]> {
    const wanted = { correlation, actor };
    const [low, high] = [Math.max(from ?? 1, this.begin()), to ?? Number.MAX_SAFE_INTEGER];
    const indexed = correlation === undefined && actor === undefined ? 0 : this.#indexed();
    const values = [correlation, actor].filter((value) => value !== undefined);
    const parts = [
      { low, high: Math.min(high, indexed), values, query: () => this.#indexedQuery(wanted, reverse) },
      {
        ...{ low: Math.max(low, indexed + 1), high, values: [...values, ...holding] },
        query: () => this.#tableQuery(wanted, reverse, holding),
      },
    ].filter((part) => part.low <= part.high);
    const size = Math.min(limit ?? PAGE, PAGE);
    for (const part of reverse ? parts.toReversed() : parts) {
      const query = part.query();
      for (let [first, last] = [part.low, part.high]; first <= last; ) {
        const bounds = [...part.values, first, last, size];
        const page = sound(() => query.all(...bounds)).map(rawRecordOf);
        const end = page.at(-1);
        if (end) yield page;
        if (!end || page.length < size) break;
        if (reverse) last = end.seq - 1;
        else first = end.seq + 1;
      }
    }
  }

  #tableQuery(
    { correlation, actor }: Wanted,
    reverse: boolean | undefined,
    holding: readonly string[],
  ): StatementSync {
    const where = [
      ...(correlation === undefined ? [] : ['correlation = ?']),
      ...(actor === undefined ? [] : ['actor = ?']),
      ...(holding.length === 0 ? [] : [`(${holding.map(() => 'instr(body, ?)').join(' OR ')})`]),
    ];
    return this.#statements.prepare(
      `SELECT seq, actor, correlation, body, hash FROM records
       WHERE ${[...where, 'seq BETWEEN ? AND ?'].join(' AND ')} ORDER BY seq ${reverse ? 'DESC' : 'ASC'} LIMIT ?`,
    );
  }

  /** The index only says where to look: a record counts when it is what was asked for. */
  #indexedQuery({ correlation, actor }: Wanted, reverse = false): StatementSync {
    const column = correlation === undefined ? 'actor' : 'correlation';
    const other = correlation === undefined || actor === undefined ? '' : 'AND r.actor = ?';
    return this.#statements.prepare(
      `SELECT r.seq, r.actor, r.correlation, r.body, r.hash
       FROM ${indexTable(column)} AS i CROSS JOIN records AS r ON r.seq = i.seq AND r.${column} = i.${column}
       WHERE i.${column} = ? ${other} AND i.seq BETWEEN ? AND ? ORDER BY i.seq ${reverse ? 'DESC' : 'ASC'} LIMIT ?`,
    );
  }

  /** The first record that counts: older ones have been taken away, though some may still wait to be deleted. */
  begin(): number {
    return Number(this.#statements.text("SELECT value FROM meta WHERE key = 'begin'") ?? 1);
  }

  /**
   * Finds the newest record of an actor, not after `upTo`, that entered another state. Yields between steps: an actor may
   * have stayed in a state for a hundred thousand records.
   *
   * @returns its seq; undefined when it is not in this log any more
   */
  stateEntered(actor: string, upTo: number): Generator<undefined, number | undefined> {
    return this.#seqOfActor(
      actor,
      upTo,
      `json_extract(body, '$.from') IS NOT json_extract(body, '$.to.value')`,
    );
  }

  /** Finds the newest record of an actor, not after `upTo`, that set a field of its context to a number. @returns its seq */
  contextSet(
    actor: string,
    upTo: number,
    field: string,
    value: number,
  ): Generator<undefined, number | undefined> {
    return this.#seqOfActor(actor, upTo, 'json_extract(body, ?) = ?', `$.to.context.${field}`, value);
  }

  *#seqOfActor(
    actor: string,
    upTo: number,
    fits: string,
    ...values: SQLInputValue[]
  ): Generator<undefined, number | undefined> {
    const [begin, indexed] = [this.begin(), this.#indexed()];
    const inTable = `SELECT seq FROM records WHERE actor = ? AND seq BETWEEN ? AND ? AND ${fits} ORDER BY seq DESC LIMIT 1`;
    const late = this.#statements.number(inTable, actor, Math.max(begin, indexed + 1), upTo, ...values);
    if (late > 0 || indexed === 0) return late || undefined;
    const next = `SELECT i.seq, records.body FROM ${indexTable('actor')} AS i CROSS JOIN records USING (seq)
      WHERE i.actor = ? AND i.seq BETWEEN ? AND ? AND records.actor = i.actor ORDER BY i.seq DESC LIMIT ${STEP}`;
    const step = `SELECT max(CASE WHEN ${fits} THEN seq END) AS found, min(seq) AS low FROM (${next})`;
    for (let high = Math.min(upTo, indexed); ; ) {
      const { found, low } = this.#statements.get(step, ...values, actor, begin, high) ?? {};
      if (typeof found === 'number') return found;
      if (typeof low !== 'number') return undefined;
      high = low - 1;
      yield;
    }
  }

  /** The newest record that the index by actor and correlation holds; an earlier release made none. */
  #indexed(): number {
    return this.#hasIndex
      ? Number(this.#statements.text("SELECT value FROM meta WHERE key = 'indexed'") ?? 0)
      : 0;
  }
}

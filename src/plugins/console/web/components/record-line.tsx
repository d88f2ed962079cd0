import type { RecordRow } from '../../api/types.ts';
import { address } from '../location.ts';
import { Time } from '../text.tsx';

/** A record as one line, with the ways to its actor and to its explanation. */
export function RecordLine({ row, current = false }: { row: RecordRow; current?: boolean }) {
  return (
    <span class={`record${row.failed ? ' failed' : ''}${current ? ' current' : ''}`}>
      <Time ms={row.time} millis />
      <a class="seq" href={address(`/records/${row.seq}`, { at: row.seq })} title="Explain this record">
        {row.seq}
      </a>
      <a class="actor" href={address(`/actors/${row.actor}`)}>
        {row.actor}
      </a>
      <span class="event">{row.event}</span>
      <span class="quiet text">
        {row.failed && <strong>failed: </strong>}
        {row.text}
      </span>
    </span>
  );
}

import type { RecordAnswer, WhatIfAnswer } from '../../api/types.ts';
import { useAnswer } from '../answer.ts';
import { address } from '../location.ts';
import { counted, Time } from '../text.tsx';
import { Guards } from './transition.tsx';

type Difference = WhatIfAnswer['differences'][number];

const KINDS = {
  decided: '',
  timer: 'a timer that went off only now',
  inserted: 'inserted',
  dropped: 'dropped',
} as const;

/** What would have been decided otherwise: where it first diverged, and then all of it. */
export function Differences({ outcome }: { outcome: WhatIfAnswer }) {
  const { unknown, differences, differing, decidedAgain, onlyContext, absent, ...rest } = outcome;
  const { untrusted, untrustedTotal, open } = rest;
  // What was changed itself differs by itself: the first decision after it is where the story takes another way.
  const first = differences.find(({ kind }) => kind === 'decided' || kind === 'timer') ?? differences[0];
  return (
    <section class="card" aria-live="polite">
      <h2>
        {differing === 0
          ? 'No decision would have been different'
          : `${counted(differing, 'decision')} would have been different`}
      </h2>
      <p class="quiet">
        {counted(decidedAgain, 'record')} decided again; in {onlyContext} more only the context differs. No
        effect was carried out.
      </p>
      {unknown.length > 0 && (
        <p class="problem">
          Nothing can be tried out on {unknown.join(', ')}: the{' '}
          {unknown.length === 1 ? 'machine is' : 'machines are'} not here. What{' '}
          {unknown.length === 1 ? 'it' : 'they'} decided was taken as it was recorded.
        </p>
      )}
      {absent.map(({ seq, field }) => (
        <p key={`${seq} ${field}`}>
          Record {seq} has no field <code>{field}</code>: perhaps it is misspelt.
        </p>
      ))}
      {first && <First difference={first} />}
      {differences.length > 0 && (
        <div class="scroll">
          <table>
            <thead>
              <tr>
                <th scope="col">record</th>
                <th scope="col">as it was</th>
                <th scope="col">as it would have been</th>
              </tr>
            </thead>
            <tbody>
              {differences.map((one) => (
                <tr
                  key={`${one.seq} ${one.actor} ${one.event} ${one.kind}`}
                  class={one === first ? 'first-difference' : undefined}
                >
                  <th scope="row">
                    <a href={address(`/records/${one.seq}`, { at: one.seq })}>{one.seq}</a> {one.actor}{' '}
                    {one.event} <span class="quiet">{KINDS[one.kind]}</span>
                  </th>
                  <Decision of={one.recorded} />
                  <Decision of={one.instead} />
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {open.length > 0 && (
        <>
          <h3>What would be waited for, and whose outcome the log cannot know</h3>
          <ul>
            {open.map(({ actor, type, timer }) => (
              <li key={`${actor} ${type}`}>
                {timer ? 'the timer' : 'the effect'} <code>{type}</code> of {actor}
              </li>
            ))}
          </ul>
        </>
      )}
      {untrusted.length > 0 && (
        <>
          <h3>What can no longer be trusted</h3>
          <ul class="linked">
            {untrusted.map(({ seq, actor, event, reason }) => (
              <li key={seq}>
                <a href={address(`/records/${seq}`, { at: seq })}>{seq}</a> {actor} {event}: {reason}
              </li>
            ))}
            {untrustedTotal > untrusted.length && <li>and {untrustedTotal - untrusted.length} more</li>}
          </ul>
        </>
      )}
    </section>
  );
}

function Decision({ of }: { of: Difference['recorded'] }) {
  if (!of) return <td class="quiet">nothing</td>;
  return (
    <td>
      {of.refused && <strong class="refused">refused: </strong>}
      {of.text} {of.effects.length > 0 && <span class="quiet">asks for {of.effects.join(', ')}</span>}
    </td>
  );
}

/** Where the story first takes another way: the guards that were asked then, and those that would have been. */
function First({
  difference: { seq, time, actor, event, kind, instead, guards = [] },
}: {
  difference: Difference;
}) {
  const isRecorded = kind === 'decided' || kind === 'dropped';
  const { data } = useAnswer<RecordAnswer>(isRecorded ? `/api/records/${seq}` : undefined, {}, 'fixed');
  return (
    <section class="first-difference" aria-label="First divergence">
      <h3>
        First divergence: <a href={address(`/records/${seq}`, { at: seq })}>record {seq}</a>, {event} of{' '}
        {actor}, <Time ms={time} millis />
      </h3>
      {instead?.refused && (
        <p>
          The machine of <b>{actor}</b> would have refused it.
        </p>
      )}
      <div class="columns">
        <div>
          <h4>Guards as it was</h4>
          {data?.candidates.length ? (
            <Guards candidates={data.candidates} />
          ) : (
            <p class="quiet">None was asked.</p>
          )}
        </div>
        <div>
          <h4>Guards as it would have been</h4>
          {guards.length > 0 ? <Guards candidates={guards} /> : <p class="quiet">None was asked.</p>}
        </div>
      </div>
    </section>
  );
}

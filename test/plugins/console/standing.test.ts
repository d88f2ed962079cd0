import test from 'ava';
import { standingOf } from '../../../src/plugins/console/api/standing.ts';

const columns = [{ name: 'route', title: 'Route' }];
const row = (route: string, status: 'ok' | 'failing' | 'unknown') => ({ cells: { route }, status });

test('[C15] a page is summed up by the worst of what it says, by name, and a history says nothing of now', (t) => {
  const routes = {
    kind: 'table' as const,
    columns,
    rows: [row('a', 'ok'), row('b', 'failing'), row('c', 'unknown')],
  };
  t.deepEqual(standingOf([routes]), { status: 'failing', text: '1 ok, 1 unknown, 1 failing: b' });
  t.deepEqual(standingOf([{ ...routes, rows: [row('a', 'ok')] }]), { status: 'ok', text: '1 ok' });
  const many = ['a', 'b', 'c', 'd', 'e'].map((route) => row(route, 'failing'));
  t.is(standingOf([{ ...routes, rows: many }])?.text, '5 failing: a, b, c and 2 more');
  const facts = {
    kind: 'facts' as const,
    facts: [{ label: 'file', value: 'x', status: 'degraded' as const }],
  };
  t.is(standingOf([facts, { ...routes, rows: [row('a', 'ok')] }])?.text, '1 ok, 1 degraded: file');
  const calls = { ...routes, columns: [{ name: 'at', title: 'At', format: 'time' as const }, ...columns] };
  t.is(standingOf([calls]), undefined, 'that a call failed once does not make the gateway fail');
  t.is(standingOf([{ kind: 'text', text: 'x' }]), undefined);
});

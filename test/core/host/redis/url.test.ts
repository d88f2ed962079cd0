import test from 'ava';
import { maskRedisUrl, parseRedisUrl } from '../../../../src/core/host/redis/url.ts';

test('[R30] the URL of a Redis is understood, its index included', (t) => {
  t.like(parseRedisUrl('redis://router'), { host: 'router', port: 6379, tls: false, database: undefined });
  t.like(parseRedisUrl('redis://u%40x:p%2Fw@[::1]:7000/3'), {
    host: '::1',
    port: 7000,
    username: 'u@x',
    password: 'p/w',
    database: 3,
  });
  t.like(parseRedisUrl('rediss://:only@host/1'), { tls: true, password: 'only', database: 1 });
  t.like(parseRedisUrl('redis://host?db=0'), { database: 0 });
  t.like(parseRedisUrl('unix:///run/redis.sock?db=2'), { path: '/run/redis.sock', database: 2 });
  for (const text of [
    '',
    'host:6379',
    'http://host',
    'redis://',
    'redis://h/one',
    'redis://h/-1',
    'unix://',
    'redis://%zz@h',
  ])
    t.is(parseRedisUrl(text), undefined, text);
});

test('[R32] what is shown of a URL has neither user nor password nor query', (t) => {
  t.is(maskRedisUrl('redis://user:CANARY@host:1234/2'), 'redis://host:1234/2');
  t.is(maskRedisUrl('rediss://:CANARY@host'), 'rediss://host');
  t.is(maskRedisUrl('redis://host?db=1&password=CANARY'), 'redis://host?db=1');
  t.is(maskRedisUrl('unix:///run/redis.sock'), 'unix:///run/redis.sock');
  t.is(maskRedisUrl('postgres://CANARY@host'), '(not a Redis URL)');
});

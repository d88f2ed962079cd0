/**
 * The Redis scripts of the config store. Each runs as one atomic step across both databases, and
 * chooses its database itself, so that nothing depends on what a connection had selected before.
 */

/** Facts about each accepted write, newest first. The members of the history contain only configs. */
export const WRITES_KEY = 'holdfast:networkConfig:writes';

/** The pending transaction, so that every router on this Redis holds to it: its id, who, which ncid it reverts to, when. */
export const TRANSACTION_KEY = 'holdfast:networkConfig:transaction';

/** The config before the first write, sealed. The history itself contains only posted configs. */
export const FIRST_KEY = 'holdfast:networkConfig:first';

/** ARGV: database of the config, of the history. KEYS: config, transaction. Answers both, and Redis' time in ms. */
export const READ = `
  redis.call('SELECT', ARGV[2])
  local transaction = redis.call('GET', KEYS[2])
  redis.call('SELECT', ARGV[1])
  local time = redis.call('TIME')
  return { redis.call('GET', KEYS[1]), transaction, time[1] .. string.sub('00000' .. time[2], -6, -4) }
`;

/**
 * The optimistic lock (R3): the config is replaced only if it still has the expected ncid, and is still the text that
 * was read with it, because an edit of the key by hand does not change the ncid. Types are checked first, so that
 * nothing can fail between the first change and the last. The history is trimmed by score, and among the writes of one
 * second, where some of them stay, by their order. The first write of all keeps what was there before it.
 *
 * ARGV: database of the config, of the history · expected ncid, '' for an empty store · SHA-1 of the expected text, ''
 * when it is not known · config · op · epoch seconds · facts of the write as JSON · entries to keep · the
 * config that is replaced, sealed, '' when it is not to be kept · transID, '' without a transaction · its window in ms ·
 * who. KEYS: config, history, writes, first, transaction. Answers 1 when saved, and the transaction as it is held by then;
 * 0 when the store holds something else, or another transaction is pending.
 */
export const SAVE = `
  local function is(key, wanted)
    local found = redis.call('TYPE', key).ok
    if found == 'none' or found == wanted then return nil end
    return redis.error_reply('ERR key ' .. key .. ' holds a ' .. found .. ', not a ' .. wanted)
  end
  redis.call('SELECT', ARGV[2])
  local wrong = is(KEYS[2], 'zset') or is(KEYS[3], 'list')
  if wrong then return wrong end
  local held = redis.call('GET', KEYS[5])
  local transaction = held and cjson.decode(held)
  if transaction and transaction.transID ~= ARGV[11] then return { 0 } end
  if ARGV[6] == 'revert' and ARGV[11] ~= '' and not transaction then return { 0 } end
  redis.call('SELECT', ARGV[1])
  wrong = is(KEYS[1], 'string')
  if wrong then return wrong end

  local current = redis.call('GET', KEYS[1])
  if ARGV[3] == '' then
    if current then return { 0 } end
  else
    if not current then return { 0 } end
    if ARGV[4] ~= '' then
      if redis.sha1hex(current) ~= ARGV[4] then return { 0 } end
    else
      local parsed, config = pcall(cjson.decode, current)
      if not parsed or type(config) ~= 'table' or config.ncid ~= ARGV[3] then return { 0 } end
    end
  end
  redis.call('SET', KEYS[1], ARGV[5])
  if ARGV[6] == 'seed' then return { 1 } end

  redis.call('SELECT', ARGV[2])
  local keep = tonumber(ARGV[9])
  if ARGV[10] ~= '' and redis.call('EXISTS', KEYS[3]) == 0 then redis.call('SET', KEYS[4], ARGV[10]) end
  redis.call('ZADD', KEYS[2], ARGV[7], ARGV[5])
  redis.call('LPUSH', KEYS[3], redis.sha1hex(ARGV[5]) .. ARGV[8])
  local over = redis.call('ZCARD', KEYS[2]) - keep
  if over > 0 then
    local last = redis.call('ZRANGE', KEYS[2], over - 1, over - 1, 'WITHSCORES')[2]
    over = over - redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', '(' .. last)
    if over == redis.call('ZCOUNT', KEYS[2], last, last) then
      redis.call('ZREMRANGEBYSCORE', KEYS[2], last, last)
    elseif over > 0 then
      local age, shas = {}, {}
      for i, write in ipairs(redis.call('LRANGE', KEYS[3], 0, -1)) do age[string.sub(write, 1, 40)] = i end
      local tied = redis.call('ZRANGEBYSCORE', KEYS[2], last, last)
      for _, member in ipairs(tied) do shas[member] = redis.sha1hex(member) end
      table.sort(tied, function(a, b) return (age[shas[a]] or 1e9) > (age[shas[b]] or 1e9) end)
      for i = 1, over do redis.call('ZREM', KEYS[2], tied[i]) end
    end
  end
  redis.call('LTRIM', KEYS[3], 0, keep - 1)
  if redis.call('LLEN', KEYS[3]) >= keep then redis.call('DEL', KEYS[4]) end
  if ARGV[6] == 'revert' then redis.call('DEL', KEYS[5]) end
  if ARGV[6] ~= 'append' or ARGV[11] == '' then return { 1 } end
  local time = redis.call('TIME')
  local opened = transaction or { transID = ARGV[11], who = ARGV[13], previous = ARGV[3] }
  opened.deadline = time[1] * 1000 + math.floor(time[2] / 1000) + ARGV[12]
  local text = cjson.encode(opened)
  redis.call('SET', KEYS[5], text)
  return { 1, text }
`;

/**
 * Keeps what a transaction applied. ARGV: database of the config, of the history · transID · expected ncid.
 * KEYS: config, transaction. Answers 1 also where an earlier run of the same commit, unanswered, did it.
 */
export const COMMIT = `
  redis.call('SELECT', ARGV[2])
  local held = redis.call('GET', KEYS[2])
  if held then
    if cjson.decode(held).transID ~= ARGV[3] then return 0 end
    redis.call('DEL', KEYS[2])
    return 1
  end
  redis.call('SELECT', ARGV[1])
  local parsed, config = pcall(cjson.decode, redis.call('GET', KEYS[1]) or '')
  return parsed and type(config) == 'table' and config.ncid == ARGV[4] and 1 or 0
`;

/** The ncid of a config's text. Nearly every text holds one `"ncid"`; only one with several must be parsed. */
const NCID_OF = `
  local function ncid_of(text)
    local found, several = nil, false
    for ncid in string.gmatch(text, '"ncid"%s*:%s*"([^"\\\\]*)"') do
      several = found ~= nil
      found = ncid
      if several then break end
    end
    if found and not several then return found end
    local parsed, config = pcall(cjson.decode, text)
    return parsed and type(config) == 'table' and type(config.ncid) == 'string' and config.ncid or ''
  end
`;

/**
 * The newest entries and, whole, the second they end in, so that the reader can order those of one second. Bodies stay
 * where they are: five hundred large ones would hold up Redis' client and the reader for seconds.
 *
 * ARGV: database of the history · how many. KEYS: history, writes, first. Answers ncids with scores, the writes, and what
 * was there before the first of them.
 */
export const HISTORY = `
  ${NCID_OF}
  redis.call('SELECT', ARGV[1])
  local found = redis.call('ZREVRANGE', KEYS[1], 0, ARGV[2] - 1, 'WITHSCORES')
  if #found == 0 then return { found, {}, redis.call('GET', KEYS[3]) } end
  local last = found[#found]
  local newer = redis.call('ZREVRANGEBYSCORE', KEYS[1], '+inf', '(' .. last, 'WITHSCORES')
  for _, item in ipairs(redis.call('ZREVRANGEBYSCORE', KEYS[1], last, last, 'WITHSCORES')) do
    newer[#newer + 1] = item
  end
  for i = 1, #newer, 2 do newer[i] = ncid_of(newer[i]) end
  return { newer, redis.call('LRANGE', KEYS[2], 0, -1), redis.call('GET', KEYS[3]) }
`;

/** ARGV: database of the history · ncid. KEYS: history, first. Answers the member, else what was there first. */
export const ENTRY = `
  ${NCID_OF}
  redis.call('SELECT', ARGV[1])
  for i = 0, redis.call('ZCARD', KEYS[1]) - 1 do
    local member = redis.call('ZREVRANGE', KEYS[1], i, i)[1]
    if string.find(member, ARGV[2], 1, true) and ncid_of(member) == ARGV[2] then return { member } end
  end
  return { false, redis.call('GET', KEYS[2]) }
`;

export const KEY = 'sk-bench-0123456789abcdef0123456789abcdef';

/** Begins a session through the gateway. @returns the headers of its requests */
export async function session(url: string): Promise<Record<string, string>> {
  const headers = {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    'x-gateway-api-key': `Bearer ${KEY}`,
  };
  const params = {
    protocolVersion: '2025-06-18',
    capabilities: {},
    clientInfo: { name: 'bench', version: '1' },
  };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params });
  const answer = await fetch(url, { method: 'POST', headers, body });
  return {
    'x-gateway-api-key': headers['x-gateway-api-key'],
    'mcp-session-id': answer.headers.get('mcp-session-id') ?? '',
  };
}

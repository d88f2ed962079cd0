/**
 * A server on this machine that answers requests of the protocol without a port: a server in this process, or a program on
 * its standard input and output. It sees the same requests as an upstream at a URL.
 */
export interface LocalServer {
  /**
   * Answers one HTTP request of the protocol; its signal ends when nobody waits for the answer any more.
   *
   * @param key id of the virtual key that calls; undefined for what the gateway asks for itself
   */
  fetch(request: Request, key?: string): Promise<Response>;
  /** Ends its sessions and processes; answers that have begun break off. */
  close(): Promise<void>;
}

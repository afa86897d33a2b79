// What runs a branch's programs: an interface, so that sessions need not know how a program is kept inside its branch. Used by
// helper/sessions; implemented by process-machine.ts.
import type { MachineKind } from '../protocol/rpc.js';
import type { ProcessId } from '../state/process-id.js';

/** Everything of the host that a program in a branch gets to see, beside the system's read-only folders. */
export interface Enclosure {
  /** The workspace's real path: inside, the branch's files are there. */
  readonly folder: string;
  /** The branch's mount on the host. */
  readonly mount: string;
  /** The branch's own HOME on the host. */
  readonly home: string;
  /** The branch's own /tmp on the host, shared by all its programs. */
  readonly tmp: string;
  /** Host paths that must not show through, wherever they lie. */
  readonly hidden: readonly string[];
  /** Host paths that must be readable besides the tool chain. */
  readonly readOnly: readonly string[];
  readonly network: boolean;
}

/** What a run is for: after a crash of the helper an agent may go on, the others have lost who waits for them. */
export type RunRole = 'agent' | 'exec' | 'check';

export interface RunRequest {
  readonly role: RunRole;
  /** Id of the branch, also told to the program as BOUGH_BRANCH. */
  readonly branch: string;
  readonly enclosure: Enclosure;
  readonly command: readonly string[];
  /** The whole environment beside HOME and BOUGH_BRANCH. */
  readonly environment: Readonly<Record<string, string>>;
  /** With it the program gets a pseudoterminal of that size, else /dev/null and two pipes. */
  readonly terminal?: { readonly rows: number; readonly columns: number };
}

export interface Output {
  /** Standard error of a run without terminal comes as `stderr`; a terminal has one stream. */
  readonly stream: 'stdout' | 'stderr';
  readonly data: Buffer;
}

export interface Run {
  /** Init of its PID namespace: when it ends, everything in there has ended. */
  readonly init: ProcessId;
  /** Settles when nothing of it is left; null when a signal of ours ended it. */
  readonly exited: Promise<{ readonly exitCode: number | null }>;
  onOutput(listener: (output: Output) => void): void;
  /** Types into its terminal. */
  write(data: Buffer): void;
  resize(rows: number, columns: number): void;
  /** SIGTERM to everything in it, SIGKILL to its init after the grace. Settles when nothing is left. */
  stop(graceMs?: number): Promise<void>;
  /** Stops time for it, so that no write falls between the instant of a commit and what follows. */
  freeze(): void;
  thaw(): void;
}

export interface Machine {
  readonly kind: MachineKind;
  /** Starts the command; rejects with E_NO_BWRAP or E_SANDBOX when it cannot be enclosed. */
  run(request: RunRequest): Promise<Run>;
  /** Takes up a run of an earlier helper: no output, no input, but its end and its stop. Null when it has ended. */
  adopt(init: ProcessId): Run | null;
  /** Runs of this state folder that are alive, whoever started them. */
  survivors(state: string): readonly Survivor[];
  /** Removes what runs left that ended while no helper was there; how many things. */
  clear(): number;
}

export interface Survivor {
  readonly branch: string;
  readonly role: RunRole;
  readonly init: ProcessId;
  /** The helper that started it; null when bubblewrap outside of it is gone, or that helper. */
  readonly starter: number | null;
}

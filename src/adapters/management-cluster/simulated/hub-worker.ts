import { serveRoom } from '../../simulation/worker.ts';
import { createHubRoom } from './channel.ts';

serveRoom(createHubRoom(() => performance.now()));

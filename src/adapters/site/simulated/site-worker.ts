import { serveRoom } from '../../simulation/worker.ts';
import { createSiteRoom } from './channel.ts';

serveRoom(createSiteRoom(() => performance.now()));

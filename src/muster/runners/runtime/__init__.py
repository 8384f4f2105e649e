"""What runs inside a function's worker process: the launcher, and the bootstrap for Node.js."""

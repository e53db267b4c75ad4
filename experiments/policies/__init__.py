"""Training of policies beside other tools: throughput, time to learn, robots that walk, and policies with a memory."""

/* SPDX-License-Identifier: BSD-2-Clause */
/* `collective all-reduce|all-to-all BYTES TIMES`: microseconds for one, of so many bytes a rank or a pair of ranks.
 * bench/local.py builds and runs it. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void once(int all_to_all, const void *in, void *out, int bytes)
{
	if (all_to_all)
		MPI_Alltoall(in, bytes, MPI_BYTE, out, bytes, MPI_BYTE, MPI_COMM_WORLD);
	else
		MPI_Allreduce(in, out, bytes / (int)sizeof(long), MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
	int ranks, rank, bytes, times, all_to_all;
	double begun, took, longest;
	char *in, *out;

	MPI_Init(&argc, &argv);
	if (argc != 4)
		MPI_Abort(MPI_COMM_WORLD, 2);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	all_to_all = !strcmp(argv[1], "all-to-all");
	bytes = atoi(argv[2]);
	times = atoi(argv[3]);
	in = calloc((size_t)ranks, (size_t)bytes);
	out = calloc((size_t)ranks, (size_t)bytes);
	/* Connections are made, and memory is registered. */
	for (int i = 0; i < times / 10 + 2; i++)
		once(all_to_all, in, out, bytes);
	MPI_Barrier(MPI_COMM_WORLD);
	begun = MPI_Wtime();
	for (int i = 0; i < times; i++)
		once(all_to_all, in, out, bytes);
	took = MPI_Wtime() - begun;
	MPI_Reduce(&took, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
	if (!rank)
		printf("took %.3f us\n", longest / times * 1e6);
	free(in);
	free(out);
	MPI_Finalize();
	return 0;
}

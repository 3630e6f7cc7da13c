/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A sum over all ranks, of many sizes; and one through a window, unless the MPI's windows do not work.
 * `allreduce all-reduce|all-to-all BYTES TIMES`: microseconds for one of so many bytes a rank, or a pair of ranks
 * (bench/local.py).
 */
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST = 100000 };

static long in[LONGEST], out[LONGEST];

static int reduce(int rank, int ranks, int n)
{
	int wrong = 0;

	for (int i = 0; i < n; i++)
		in[i] = (long)rank * n + i;
	MPI_Allreduce(in, out, n, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
	for (int i = 0; i < n; i++)
		wrong += out[i] != (long)n * ranks * (ranks - 1) / 2 + (long)ranks * i;
	return wrong;
}

#ifndef NO_WINDOWS
static int accumulate(int rank, int ranks)
{
	long *sum, one = rank + 1;
	MPI_Win win;
	int wrong;

	MPI_Win_allocate(sizeof(*sum), sizeof(*sum), MPI_INFO_NULL, MPI_COMM_WORLD, &sum, &win);
	*sum = 0;
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_fence(0, win);
	MPI_Accumulate(&one, 1, MPI_LONG, 0, 0, 1, MPI_LONG, MPI_SUM, win);
	MPI_Win_fence(0, win);
	wrong = rank == 0 && *sum != (long)ranks * (ranks + 1) / 2;
	MPI_Win_free(&win);
	return wrong;
}
#endif

static void time_one(bool all_to_all, int rank, int ranks, int bytes, int times)
{
	char *from = calloc((size_t)ranks, (size_t)bytes), *to = calloc((size_t)ranks, (size_t)bytes);
	double begun = 0, took, longest;

	/* The first ones make connections and register memory. */
	for (int i = -times / 10 - 2; i < times; i++) {
		if (!i) {
			MPI_Barrier(MPI_COMM_WORLD);
			begun = MPI_Wtime();
		}
		if (all_to_all)
			MPI_Alltoall(from, bytes, MPI_BYTE, to, bytes, MPI_BYTE, MPI_COMM_WORLD);
		else
			MPI_Allreduce(from, to, bytes / (int)sizeof(long), MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
	}
	took = MPI_Wtime() - begun;
	MPI_Allreduce(&took, &longest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
	if (!rank)
		printf("took %.3f us\n", longest / times * 1e6);
	free(from);
	free(to);
}

int main(int argc, char **argv)
{
	int rank, ranks, wrong = 0, all;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (argc == 4) {
		time_one(!strcmp(argv[1], "all-to-all"), rank, ranks, atoi(argv[2]), atoi(argv[3]));
		MPI_Finalize();
		return 0;
	}
	for (int n = 1; n <= LONGEST; n *= 10)
		wrong += reduce(rank, ranks, n);
#ifndef NO_WINDOWS
	wrong += accumulate(rank, ranks);
#endif
	MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (rank == 0)
		printf("%d ranks, %d wrong\n", ranks, all);
	MPI_Finalize();
	return all != 0;
}

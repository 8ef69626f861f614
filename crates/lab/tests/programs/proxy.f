# A caching proxy: an object is replaced, five others are read.
set $nfiles=10000
set $nthreads=100

define fileset name=cache,size=16k,entries=$nfiles,dirwidth=1000000,prealloc=80

define process name=proxy
{
  thread name=worker,instances=$nthreads
  {
    flowop deletefile name=evict,filesetname=cache
    flowop createfile name=new,filesetname=cache,fd=1
    flowop appendfilerand name=store,iosize=16k,fd=1
    flowop closefile name=close1,fd=1
    flowop openfile name=open2,filesetname=cache,fd=1
    flowop readwholefile name=read2,fd=1,iosize=1m
    flowop closefile name=close2,fd=1
    flowop openfile name=open3,filesetname=cache,fd=1
    flowop readwholefile name=read3,fd=1,iosize=1m
    flowop closefile name=close3,fd=1
    flowop openfile name=open4,filesetname=cache,fd=1
    flowop readwholefile name=read4,fd=1,iosize=1m
    flowop closefile name=close4,fd=1
    flowop openfile name=open5,filesetname=cache,fd=1
    flowop readwholefile name=read5,fd=1,iosize=1m
    flowop closefile name=close5,fd=1
    flowop openfile name=open6,filesetname=cache,fd=1
    flowop readwholefile name=read6,fd=1,iosize=1m
    flowop closefile name=close6,fd=1
    flowop opslimit name=limit
  }
}

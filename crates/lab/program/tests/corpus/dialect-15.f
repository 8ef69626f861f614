# Every command, attribute and operation of the newer dialect.
set $dir=/tmp
set $nfiles=100
set $twice=$nfiles * 2
set $some=$twice + 10
set $fewer=$some - 20
set $half=$fewer / 2
set $name="files of a text"
set $iosize=cvar(type=cvar-gamma,parameters=mean:16384;gamma:1.5,min=1k,max=1m,round=512)
set $uniform=randvar(type=uniform,min=1k,mean=4k,round=512,seed=7,randsrc=urandom)
set $table=randvar(type=tabular,min=1k,randtable={{80,1k,4k},{15,4k,16k},{05,16k,64k}})
set $index=randvar(type=gamma,min=0,gamma=100)
set $readit=true
set mode nousestats
set mode quit alldone
debug 1
eventgen rate=100
define file name=one,path=$dir,size=1m,prealloc,reuse,trusttree
define file name=out,path=$dir,filesize=0,writeonly
define fileset name=many,path=$dir,size=$iosize,entries=$twice,dirwidth=10,dirgamma=0,prealloc=80,paralloc
define fileset name=reads,path=$dir,size=16k,entries=$nfiles,dirwidth=$nfiles,dirdepthrv=$uniform,prealloc=100,readonly=$readit
define fileset name=dirs,path=$dir,leafdirs=50,dirwidth=5,prealloc=50
define flowop name=copy, iters=2, $to, $size=4k
{
  flowop openfile name=open,filesetname=reads,fd=1
  flowop createfile name=create,filesetname=$to,fd=2
  flowop writewholefile name=write,srcfd=1,fd=2,iosize=$size
  flowop fsyncset name=flush,filesetname=$to
  flowop closefile name=close1,fd=1
  flowop closefile name=close2,fd=2
}
define flowop name=twice, $where
{
  flowop copy name=first,$to=$where
  flowop copy name=second,iters=3,$to=$where,$size=8k
}
define process name=files,instances=2,nice=5
{
  thread name=worker,memsize=10m,instances=3,useism,ioprio=3
  {
    flowop twice name=both,$where=many
    flowop deletefile name=remove,filesetname=many
    flowop statfile name=stat,filesetname=many,indexed=$index
    flowop openfile name=open,filesetname=many,fd=3
    flowop readwholefile name=readall,fd=3,iosize=1m
    flowop appendfile name=append,fd=3,iosize=$uniform
    flowop appendfilerand name=appendrand,fd=3,iosize=16k
    flowop fsync name=flush,fd=3
    flowop closefile name=close,fd=3
    flowop eventlimit name=pace
    flowop opslimit name=ops
    flowop iopslimit name=iops,target=readall
    flowop bwlimit name=bytes,target=readall
    flowop delay name=pause,value=0
    flowop hog name=burn,value=10
  }
  thread name=blocks
  {
    flowop read name=random,filename=one,random,iosize=8k,workingset=512k,directio,noreadahead,iters=$table
    flowop write name=sequence,filename=one,iosize=4k,dsync=true
    flowop aiowrite name=later,filesetname=reads,opennext,random,iosize=512
    flowop aiowait name=join
    flowop semblock name=room,value=10,highwater=100
    flowop block name=blocked
  }
  thread name=others
  {
    flowop sempost name=post,value=1,target=room,blocking
    flowop wakeup name=wake,target=blocked
    flowop makedir name=make,filesetname=dirs
    flowop removedir name=unmake,filesetname=dirs
    flowop listdir name=list,filesetname=dirs
    flowop finishoncount name=enough,value=1000,target=list
    flowop finishonbytes name=bytes,value=1g
  }
}
create files
create fileset
list fileset
list flowop
echo "It is $name"
version
sleep 1
enable lathist
run $half
quit
